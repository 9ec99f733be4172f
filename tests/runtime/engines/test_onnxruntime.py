"""Reference engine: the results of eager, with the signatures, bounds and state of the package."""

from __future__ import annotations

import json
import random
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pelton import aot, runtime
from pelton.runtime.artifacts.entry_points import STATE, EntryPoint, Role, member_name
from pelton.runtime.artifacts.trtm import write_trtm
from pelton.runtime.errors import (
    ArtifactError,
    DeviceError,
    MissingDependencyError,
    ParameterError,
    PeltonError,
    SignatureError,
)
from tests.packages import package, write_package
from tests.programs import assert_same
from tests.runtime.programs import (
    Counter,
    Pair,
    add_one,
    export_structured,
    of_constants,
    plus_number,
    rows,
    shared_rows,
    structured,
    two_entry_points,
)

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")


def loaded(out: aot.ExportOutput, folder: Path, *names: str) -> runtime.Executable:
    return runtime.load(write_package(out, folder, *names), device="reference")


@pytest.fixture(scope="module")
def counter_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = aot.export(Counter(), args=(torch.zeros(4),))
    return write_package(out, tmp_path_factory.mktemp("counter"))


@pytest.fixture
def counter(counter_path: Path) -> runtime.Executable:
    return runtime.load(counter_path, device="reference")


def test_results_are_those_of_eager_at_every_size(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    exe = loaded(aot.export(model, args=[rows(1, 8)]), tmp_path)
    for count in (1, 2, 8):
        x = torch.randn(count, 4)
        assert_same(exe(x), model(x))
    assert exe.device == "reference" and exe.stream is None


def test_numpy_in_numpy_out(tmp_path: Path) -> None:
    exe = loaded(aot.export(add_one, args=[rows(1, 8)]), tmp_path)
    result = exe(np.ones((3, 4), np.float32))
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, np.full((3, 4), 2, np.float32))
    backward = np.arange(12, dtype=np.float32).reshape(3, 4)[::-1]
    np.testing.assert_array_equal(exe(backward), backward + 1)


def test_size_outside_its_bounds_is_refused(tmp_path: Path) -> None:
    exe = loaded(aot.export(lambda x, y: x + y, args=shared_rows()), tmp_path)
    x = torch.ones(9, 4)
    with pytest.raises(SignatureError, match=r"\('batch'\) is 9, outside its range 1\.\.8"):
        exe(x, x)
    with pytest.raises(SignatureError, match="both must be equal"):
        exe(x[:2], x[:3])
    with pytest.raises(SignatureError, match="expects float32"):
        exe(x[:2].double(), x[:2])


def test_containers_and_constants_come_back(tmp_path: Path) -> None:
    exe = loaded(export_structured(tmp_path), tmp_path)
    x, pair = torch.randn(2), Pair(torch.randn(2), torch.randn(3))
    options = {"shift": torch.randn(2), "unused": None}
    assert_same(exe(x, options, pair), structured(x, options, pair))


def test_call_without_tensors_gives_constants_and_torch_tensors(tmp_path: Path) -> None:
    exe = loaded(aot.export(of_constants), tmp_path)
    assert_same(exe(), of_constants())


def test_number_drives_a_shape(tmp_path: Path) -> None:
    number = aot.DimensionInputInfo((1, 2, 100))
    exe = loaded(
        aot.export(lambda x, n: (x.sum() + torch.arange(n), n), args=(torch.ones(3), number)),
        tmp_path,
    )
    for n in (1, 7, 100):
        result, same = exe(torch.ones(3), n)
        assert_same((result, same), (3.0 + torch.arange(n), n))
    assert exe.input_infos["n"].value_bounds == (1, 2, 100)
    with pytest.raises(SignatureError, match="101"):
        exe(torch.ones(3), 101)


def test_number_comes_back_as_a_number(tmp_path: Path) -> None:
    number = aot.DimensionInputInfo((1, 2, 100))
    exe = loaded(aot.export(plus_number, args=(torch.zeros(4), number)), tmp_path)
    assert_same(exe(torch.ones(4), 5), (torch.full((4,), 6.0), 5))


def test_state_is_kept_read_written_and_reset(counter: runtime.Executable) -> None:
    x = torch.arange(4.0)
    eager = Counter()
    for _ in range(3):
        assert_same(counter(x), eager(x))
    assert_same(dict(counter.state), dict(eager.named_buffers()))
    counter.state["total"] = np.full(4, 10, np.float32)
    assert_same(counter(x), 10 + x)
    counter.reset_state()
    assert_same(counter(x), x)
    assert counter.state["calls"].item() == 1


def test_state_is_copied_in_and_out(counter: runtime.Executable) -> None:
    given = np.zeros(4, np.float32)
    counter.state["total"] = given
    given[:] = 9
    counter.state["total"][:] = 9
    assert_same(counter.state["total"], torch.zeros(4))
    result = counter(torch.ones(4))
    result[:] = 9
    assert_same(counter.state["total"], torch.ones(4))


def test_executables_of_one_file_have_states_of_their_own(counter_path: Path) -> None:
    first, second = (runtime.load(counter_path, device="reference") for _ in range(2))
    first(torch.ones(4))
    assert second.state["calls"].item() == 0


def test_wrong_state_is_refused(counter: runtime.Executable) -> None:
    with pytest.raises(SignatureError, match="argument value expects float32"):
        counter.state["total"] = np.zeros(4)
    with pytest.raises(KeyError, match="no state 'other'; there is: "):
        _ = counter.state["other"]


class Decoder(aot.CompiledModule):
    """Two entry points that share a cache."""

    cache = aot.export_global(
        aot.AbstractTensor(4, dtype=torch.float32), mutable=True, uninitialized=False
    )

    def put(self, x=aot.AbstractTensor(4, dtype=torch.float32)):
        self.cache = x

    def add(self, x=aot.AbstractTensor(4, dtype=torch.float32)):
        return aot.jittable(lambda a, b: a + b)(self.cache, x)


def test_entry_points_share_state(tmp_path: Path) -> None:
    exe = loaded(aot.export(Decoder), tmp_path, "put", "add")
    exe.put(torch.full((4,), 2.0))
    assert_same(exe.add(torch.ones(4)), torch.full((4,), 3.0))
    assert list(exe.functions) == ["put", "add"]
    exe.reset_state()
    assert_same(exe.add(torch.ones(4)), torch.ones(4))


def test_saved_executable_is_loaded_again(counter: runtime.Executable, tmp_path: Path) -> None:
    counter(torch.ones(4))
    counter.save(tmp_path / "again.trtm")
    again = runtime.Executable.load(tmp_path / "again.trtm", device="reference")
    assert again.state["calls"].item() == 0
    data = (tmp_path / "again.trtm").read_bytes()
    assert_same(runtime.load(data, device="reference")(torch.ones(4)), torch.ones(4))


def test_size_that_depends_on_values(tmp_path: Path) -> None:
    out = aot.export(lambda x: x[x > 0] * 2, args=(torch.zeros(6),))
    exe = loaded(out, tmp_path)
    for x in (torch.tensor([-1.0, 2, 3, -4, 5, 0]), -torch.ones(6)):
        assert_same(exe(x), x[x > 0] * 2)


def test_weights_in_a_file_of_their_own(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    out = aot.export(model, args=[rows(1, 8)])
    manifest, members = package(out, tmp_path)
    program = out.to_onnx(tmp_path / "x.onnx")
    program.save(tmp_path / "main.onnx", external_data=True)
    name = member_name("reference_data", "main")
    members[member_name("reference", "main")] = tmp_path / "main.onnx"
    members[name] = tmp_path / "main.onnx.data"
    (function,) = manifest.functions
    function = replace(function, members={**function.members, "reference_data": name})
    write_trtm(tmp_path / "m.trtm", replace(manifest, functions=(function,)), members)
    for file in tmp_path.glob("main*"):
        file.unlink()
    x = torch.randn(5, 4)
    assert_same(runtime.load(tmp_path / "m.trtm", device="reference")(x), model(x))


def test_types_that_onnxruntime_lacks_are_refused_by_name(tmp_path: Path) -> None:
    out = aot.export(add_one, args=(torch.zeros(4, dtype=torch.bfloat16),))
    path = write_package(out, tmp_path)
    with pytest.raises(DeviceError) as caught:
        runtime.load(path, device="reference")
    assert str(caught.value) == (
        f"{path} cannot run on device 'reference': onnxruntime has no bfloat16 and float8 on the "
        "processor (main(): x (bfloat16), main(): result (bfloat16)); export it with float32 for "
        "checks"
    )


def test_weights_of_types_that_onnxruntime_lacks_are_refused(tmp_path: Path) -> None:
    linear = torch.nn.Linear(4, 4).bfloat16()
    out = aot.export(lambda x: linear(x.bfloat16()).float(), args=(torch.zeros(2, 4),))
    path = write_package(out, tmp_path)
    with pytest.raises(DeviceError, match=r"main\(\) cannot run on device 'reference': .*NOT_IMPL"):
        runtime.load(path, device="reference")


def without(path: Path, out: aot.ExportOutput, role: Role, **changes: object) -> Path:
    manifest, members = package(out, path)
    (function,) = manifest.functions
    others = {r: name for r, name in function.members.items() if r != role}
    function = replace(function, members=others)
    members.pop(member_name(role, "main"))
    write_trtm(path / "m.trtm", replace(manifest, functions=(function,)), members)
    return path / "m.trtm"


def test_package_without_reference_graphs_is_refused(tmp_path: Path) -> None:
    path = without(tmp_path, aot.export(add_one, args=(torch.zeros(4),)), "reference")
    with pytest.raises(ArtifactError, match=r"has no reference graph of main; compile it with"):
        runtime.load(path, device="reference")


def test_graph_that_is_no_graph_is_refused(tmp_path: Path) -> None:
    manifest, members = package(aot.export(add_one, args=(torch.zeros(4),)), tmp_path)
    members[member_name("reference", "main")] = b"no graph"
    write_trtm(tmp_path / "m.trtm", manifest, members)
    with pytest.raises(DeviceError, match=r"main\(\) cannot run on device 'reference'"):
        runtime.load(tmp_path / "m.trtm", device="reference")


def test_missing_onnxruntime_is_told_with_the_command(
    counter_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependencyError, match="pip install onnxruntime"):
        runtime.load(counter_path, device="reference")


@pytest.mark.parametrize("device", ["cpu", "local-task", "vulkan", "reference:1"])
def test_other_devices_are_refused(counter_path: Path, device: str) -> None:
    with pytest.raises(DeviceError, match=rf"there is no device '{device}' for it; known: cuda"):
        runtime.load(counter_path, device=device)


def test_parameters_for_a_package_without_any_are_refused(counter_path: Path) -> None:
    with pytest.raises(ParameterError, match="takes no parameters: its weights are in its engines"):
        runtime.load(counter_path, device="reference", parameters={"x": np.zeros(1)})


def with_fallback(out: aot.ExportOutput, folder: Path) -> Path:
    """A package whose function is run by IREE."""
    manifest, members = package(out, folder)
    out.compile(folder / "main.vmfb")
    (function,) = manifest.functions
    roles: dict[Role, str] = {
        role: member_name(role, "main") for role in ("fallback", "fallback_reference")
    }
    state = {STATE: members[STATE]} if STATE in members else {}
    entry: EntryPoint = replace(function, members=roles, profiles=())
    write_trtm(
        folder / "m.trtm",
        replace(manifest, functions=(entry,)),
        {**state, **dict.fromkeys(roles.values(), folder / "main.vmfb")},
    )
    return folder / "m.trtm"


def test_function_that_iree_runs_shares_the_state_of_the_package(tmp_path: Path) -> None:
    path = with_fallback(aot.export(Counter(), args=(torch.zeros(4),)), tmp_path)
    exe, eager, x = runtime.load(path, device="reference"), Counter(), torch.arange(4.0)
    for _ in range(3):
        assert_same(exe(x), eager(x))
    assert_same(dict(exe.state), dict(eager.named_buffers()))
    exe.state["total"] = torch.zeros(4)
    assert_same(exe(x), x)
    exe.reset_state()
    assert exe.state["calls"].item() == 0


def test_each_of_two_entry_points_is_called_by_its_name(tmp_path: Path) -> None:
    out = two_entry_points(tmp_path)
    exe = loaded(out, tmp_path, "double", "square")
    assert_same(exe.double(torch.ones(3)), torch.full((3,), 2.0))
    assert_same(exe.square(torch.full((3,), 3.0)), torch.full((3,), 9.0))
    with pytest.raises(SignatureError, match="2 entry points"):
        exe(torch.ones(3))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value within JSON."""
    yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    if isinstance(value, dict):
        for key, child in value.items():
            yield from places(child, (*path, key))


def test_any_change_of_the_manifest_is_refused_or_harmless(
    counter_path: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(counter_path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chance, values = random.Random(0), [None, True, -1, 10**30, 0.5, "", "x", [], {}, [[]], {"": 1}]
    every = list(places(json.loads(members["manifest.json"])))[1:]
    refused = 0
    for _ in range(200):
        manifest = json.loads(members["manifest.json"])
        *way, last = chance.choice(every)
        inner = manifest
        for key in way:
            inner = inner[key]
        inner[last] = chance.choice(values)
        path = tmp_path / "m.trtm"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                text = json.dumps(manifest).encode()
                archive.writestr(name, text if name == "manifest.json" else data)
        try:
            result = runtime.load(path, device="reference")(torch.ones(4))
            assert_same(result, torch.ones(4))
        except PeltonError:
            refused += 1
    assert refused > 80
