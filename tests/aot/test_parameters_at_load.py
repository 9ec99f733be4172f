import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from pelton import aot, runtime
from pelton.runtime.archive import write_archive
from pelton.runtime.archive.irpa import plan
from pelton.runtime.archive.parameter import parameter_of

from .weights import NEEDED, TOKENS, Varied, eager, varied

VECTOR = aot.AbstractTensor(1, 4, dtype=torch.float32)


@pytest.fixture(scope="module")
def model() -> Varied:
    return varied()


@pytest.fixture(scope="module")
def program(model: Varied, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("varied")
    out = aot.export(model, args=(TOKENS,), external_parameters=True)
    out.compile(folder / "varied.vmfb")
    out.save_parameters(folder / "varied.irpa")
    out.save_parameters(folder / "varied.safetensors")
    return folder / "varied.vmfb"


def needed(model: nn.Module) -> dict[str, torch.Tensor]:
    """The tensors of the model that the program asks for, as they would come from a checkpoint."""
    return {name: t.detach().clone() for name, t in model.state_dict().items() if name in NEEDED}


def shards(folder: Path, model: nn.Module) -> list[Path]:
    """The weights in two files, with the index that sharded checkpoints have."""
    tensors = {name: tensor.contiguous() for name, tensor in needed(model).items()}
    paths = [folder / f"model-{i}.safetensors" for i in range(2)]
    files: dict[str, str] = {}
    for path, names in zip(paths, (list(tensors)[::2], list(tensors)[1::2]), strict=True):
        safetensors.torch.save_file({name: tensors[name] for name in names}, path)
        files |= dict.fromkeys(names, path.name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    return paths


def as_numpy(model: nn.Module) -> dict[str, Any]:
    return {name: parameter_of(name, tensor).array() for name, tensor in needed(model).items()}


SOURCES: dict[str, Callable[[Path, Path, Varied], Any]] = {
    "irpa": lambda given, tmp, model: given / "varied.irpa",
    "safetensors": lambda given, tmp, model: str(given / "varied.safetensors"),
    "files": lambda given, tmp, model: shards(tmp, model),
    "sharded": lambda given, tmp, model: shards(tmp, model)[0].with_name(
        "model.safetensors.index.json"
    ),
    "scope": lambda given, tmp, model: {"model": given / "varied.irpa"},
    "files of a scope": lambda given, tmp, model: {"model": shards(tmp, model)},
    "state_dict": lambda given, tmp, model: needed(model),
    "state_dict of a scope": lambda given, tmp, model: {"model": needed(model)},
    "numpy": lambda given, tmp, model: as_numpy(model),
    "opened": lambda given, tmp, model: runtime.open_archive(given / "varied.irpa"),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_program_computes_with_the_weights_given(
    kind: str, program: Path, model: Varied, tmp_path: Path
) -> None:
    executable = runtime.load(program, parameters=SOURCES[kind](program.parent, tmp_path, model))
    expected = eager(model, TOKENS)
    torch.testing.assert_close(executable(TOKENS), expected)
    torch.testing.assert_close(executable(TOKENS), expected + 3)  # the count is kept
    executable.reset_state()
    torch.testing.assert_close(executable(TOKENS), expected)


def test_new_weights_need_no_new_program(program: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        other = varied(seed)
        other.scratch = varied().scratch  # not persistent: part of the program
        path = tmp_path / f"{seed}.irpa"
        aot.export(other, args=(TOKENS,), external_parameters=True).save_parameters(path)
        executable = runtime.load(program, parameters=path)
        torch.testing.assert_close(executable(TOKENS), eager(other, TOKENS))


def test_state_dict_with_names_that_are_tied_fits(program: Path) -> None:
    given = {k: v for k, v in varied().state_dict().items() if not k.startswith("unused.")}
    assert "head.weight" in given
    assert runtime.load(program, parameters=given)(TOKENS).shape == (3, 10)


def test_archive_is_used_in_another_process_without_torch(program: Path, model: Varied) -> None:
    code = """
        import sys
        import numpy as np
        from pelton import runtime

        program, archive = sys.argv[1:]
        result = runtime.load(program, parameters=archive)(np.array([1, 2, 3]))
        assert "torch" not in sys.modules
        print(result.tolist())
    """
    done = run_child(code, program, program.with_suffix(".irpa"))
    torch.testing.assert_close(torch.tensor(json.loads(done)), eager(model, TOKENS))


def test_names_may_be_of_any_language(tmp_path: Path) -> None:
    layer, name = nn.Linear(2, 2), "größe/<重み> 'a'"
    aot.externalize_module_parameters(layer, external_scope="範囲", prefix=name)
    aot.export(layer, args=(torch.ones(2),)).save_mlir(tmp_path / "a.mlir")
    out = aot.export(tmp_path / "a.mlir")
    assert out.parameters["範囲"].keys() == {f"{name}.weight", f"{name}.bias"}
    out.compile(tmp_path / "a.vmfb")
    given = {"範囲": {f"{name}.{key}": value for key, value in layer.state_dict().items()}}
    executable = runtime.load(tmp_path / "a.vmfb", parameters=given)
    torch.testing.assert_close(executable(torch.ones(2)), eager(layer, torch.ones(2)))


# What is refused


def test_all_that_is_wrong_is_told_at_once(program: Path) -> None:
    given = needed(varied())
    del given["body.bias"], given["mask"]
    given["gain"] = given["gain"].half()
    given["strided"] = given["strided"].reshape(2, 8)
    given["gian"] = torch.zeros(1)
    with pytest.raises(aot.ParameterError) as caught:
        runtime.load(program, parameters=given)
    lines = str(caught.value).splitlines()[1:]
    assert sorted(lines) == [
        "  missing (2): model::body.bias (float32 4), model::mask (bool 4)",
        "  not used by the program (1): gian (float32 1) from memory",
        "  of another element type (1): model::gain: float32 scalar, given float16 scalar",
        "  of another shape (1): model::strided: float32 4x4, given float32 2x8",
    ]


def test_program_without_its_parameters_lists_them(program: Path) -> None:
    with pytest.raises(aot.ParameterError) as caught:
        runtime.load(program)
    assert all(f"model::{name} (" in str(caught.value) for name in NEEDED)


def test_parameters_that_a_program_has_no_use_for_are_refused_unless_allowed(
    program: Path,
) -> None:
    given = needed(varied()) | {"other.weight": torch.zeros(2)}
    with pytest.raises(aot.ParameterError, match="allow_unused_parameters=True"):
        runtime.load(program, parameters=given)
    runtime.load(program, parameters=given, allow_unused_parameters=True)(TOKENS)


# Memory


def test_live_tensors_are_used_in_place(program: Path, model: Varied) -> None:
    live = needed(model)
    executable = runtime.load(program, parameters=live)
    before = executable(TOKENS)
    live["body.bias"] += 1
    executable.reset_state()
    assert not torch.equal(executable(TOKENS), before)


def test_live_arrays_are_used_in_place(program: Path, model: Varied) -> None:
    live = as_numpy(model)
    aligned = torch.empty(4).numpy()  # numpy's own memory starts anywhere
    aligned[:] = live["body.bias"]
    executable = runtime.load(program, parameters=live | {"body.bias": aligned})
    before = executable(TOKENS)
    aligned += 1
    executable.reset_state()
    assert not torch.equal(executable(TOKENS), before)


@pytest.mark.parametrize("offset", [1, 3])
def test_unaligned_and_strided_tensors_are_used_by_value(
    program: Path, model: Varied, offset: int
) -> None:
    moved = {}
    for name, tensor in needed(model).items():
        memory = torch.empty(2 * tensor.numel() + offset, dtype=tensor.dtype)
        moved[name] = memory[offset:][::2].view_as(tensor).copy_(tensor)
    executable = runtime.load(program, parameters=moved)
    torch.testing.assert_close(executable(TOKENS), eager(model, TOKENS))


def test_state_is_never_written_to_what_was_given(program: Path, model: Varied) -> None:
    live = needed(model)
    archive = program.with_suffix(".irpa")
    before = archive.read_bytes()
    for given in (live, archive):
        executable = runtime.load(program, parameters=given)
        executable(TOKENS)
        assert executable.state["count"].tolist() == [1, 1, 1]
    assert live["count"].tolist() == [0, 0, 0]
    assert archive.read_bytes() == before


def test_load_of_a_large_archive_touches_none_of_it(tmp_path: Path) -> None:
    with torch.device("meta"):
        layer = nn.Linear(1 << 15, 1 << 14, bias=False)
    aot.export(layer, args=(torch.ones(1, 1 << 15),), external_parameters=True).compile(
        tmp_path / "a.vmfb"
    )
    weight = np.broadcast_to(np.float32(0), (1 << 14, 1 << 15))  # 2 GB, of which none is written
    layout = plan([parameter_of("weight", weight)])
    with open(tmp_path / "a.irpa", "wb") as file:
        file.write(layout.head)
        file.truncate(layout.nbytes)
    code = """
        import resource, sys, time
        from pelton import runtime

        def resident():
            pages = int(open("/proc/self/statm").read().split()[1])
            return pages * resource.getpagesize()

        runtime.devices()
        before, start = resident(), time.perf_counter()
        executable = runtime.load(sys.argv[1], parameters=sys.argv[2])
        print(resident() - before, time.perf_counter() - start)
    """
    touched, seconds = run_child(code, tmp_path / "a.vmfb", tmp_path / "a.irpa").split()
    assert int(touched) < 64 << 20
    assert float(seconds) < 2


class Halves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4096, 8192, bias=False)
        self.second = nn.Linear(8192, 4096, bias=False)

    def up(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x)

    def both(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two programs of one model, the first of which uses half of the weights: 256 MB in all."""
    folder = tmp_path_factory.mktemp("halves")
    with torch.device("meta"):
        model = Halves()
    for name in ("up", "both"):
        out = aot.export(
            getattr(model, name), args=(torch.ones(1, 4096),), external_parameters=True
        )
        out.compile(folder / f"{name}.vmfb")
    block = np.full((8192, 4096), 2**-13, np.float32)
    write_archive(
        folder / "halves.irpa",
        [
            parameter_of("first.weight", block),
            parameter_of("second.weight", block.reshape(4096, -1)),
        ],
    )
    return folder


def test_entry_points_of_one_program_share_each_parameter(tmp_path: Path) -> None:
    net = nn.Linear(4, 4)

    class Twice(aot.CompiledModule):
        params = aot.export_parameters(net, external=True)

        def once(self, x=VECTOR):  # type: ignore
            return self._apply(self.params, x)

        def twice(self, x=VECTOR):  # type: ignore
            return self._apply(self.params, self._apply(self.params, x))

        @aot.jittable
        def _apply(params, x):  # type: ignore
            return torch.func.functional_call(net, params, (x,))

    out = aot.export(Twice)
    assert out.parameters["model"].keys() == {"params.weight", "params.bias"}
    out.compile(tmp_path / "a.vmfb")
    live = {f"params.{name}": tensor for name, tensor in net.state_dict().items()}
    executable = runtime.load(tmp_path / "a.vmfb", parameters=live)
    x = torch.ones(1, 4)
    for change in (0, 1):
        live["params.bias"] += change  # one memory for both, and for the model itself
        torch.testing.assert_close(executable.once(x), eager(net, x))
        torch.testing.assert_close(executable.twice(x), eager(net, eager(net, x)))


@pytest.mark.parametrize("live", [False, True], ids=["archive", "live tensors"])
def test_programs_of_one_model_share_one_copy_of_the_weights(halves: Path, live: bool) -> None:
    code = """
        import sys
        import numpy as np
        from pelton import runtime

        def memory():
            lines = open("/proc/self/smaps_rollup").read().splitlines()[1:]
            sizes = {line.split(":")[0]: int(line.split()[1]) >> 10 for line in lines}
            return sizes["Pss"]

        folder, live = sys.argv[1], sys.argv[2] == "True"
        x = np.ones((1, 4096), np.float32)
        before = memory()
        given = folder + "/halves.irpa"
        if live:
            given = {
                name: np.empty(p.nbytes // 4 + 16, np.float32)
                for name, p in runtime.open_archive(given).items()
            }
            shapes = {"first.weight": (8192, 4096), "second.weight": (4096, 8192)}
            for name, memory_of in given.items():
                start = -memory_of.ctypes.data % 64 // 4
                array = memory_of[start : start + 8192 * 4096].reshape(shapes[name])
                array[:] = 2**-13
                given[name] = array
        programs = [
            runtime.load(f"{folder}/{name}.vmfb", parameters=given, allow_unused_parameters=True)
            for name in ("up", "both")
        ]
        assert (programs[0](x) == 0.5).all() and (programs[1](x) == 0.5).all()
        print(memory() - before)
    """
    assert 256 <= int(run_child(code, halves, live)) < 300


def run_child(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
