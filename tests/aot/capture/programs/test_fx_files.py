"""Saved programs: whole, movable, free of code, and the same when loaded."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot
from pelton.aot.capture.programs import fx_files
from tests.aot import shared_programs as shared
from tests.aot.capture.programs.test_fx_programs import assert_runs_as_eager
from tests.programs import assert_same, through_files

X = torch.ones(2, 4)


@pytest.fixture(scope="module")
def programs() -> aot.FxProgramsBuilder:
    return shared.build(shared.Model())


@pytest.fixture
def saved(programs: aot.FxProgramsBuilder, tmp_path: Path) -> Path:
    programs.save(tmp_path / "lm.json")
    return tmp_path / "lm.json"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def archive_of(path: Path) -> Path:
    return path.with_name(json.loads(path.read_bytes())["body"]["archive"]["file"])


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the contents of a description as an attacker would: with a checksum that fits."""
    data = json.loads(path.read_bytes())
    change(data["body"])
    data["sha256"] = hashlib.sha256(fx_files._canonical(data["body"])).hexdigest()
    path.write_text(json.dumps(data))


# The same programs


def test_loaded_programs_give_the_same_module(
    programs: aot.FxProgramsBuilder, saved: Path, tmp_path: Path
) -> None:
    loaded = aot.export(aot.FxPrograms.load(saved))
    assert str(loaded.mlir_module) == str(aot.export(programs).mlir_module)
    assert_runs_as_eager(through_files(loaded, tmp_path), shared.Model())


def test_tensors_are_stored_once_and_shared_again(
    programs: aot.FxProgramsBuilder, saved: Path
) -> None:
    # 2 names of the tied weight, the cache, the mask and the length, in each of 3 programs, and a
    # table in 2: 17 in all, of which 5 are different
    assert programs.save(saved) == 12
    elements = shared.WORDS * shared.WIDTH + shared.CONTEXT * shared.WIDTH + shared.TABLE.numel()
    assert 4 * elements < archive_of(saved).stat().st_size < 4 * elements + 1024
    loaded = aot.FxPrograms.load(saved).programs
    state, other = loaded["prefill"].target.state_dict, loaded["decode"].target
    assert state["root.words.weight"] is state["root.head.weight"]
    assert state["root.words.weight"] is other.state_dict["root.words.weight"]
    assert isinstance(state["root.words.weight"], nn.Parameter)
    assert loaded["length"].target.constants["root.length"] is other.constants["root.length"]


def test_loaded_programs_can_be_called_saved_and_exported_again(
    programs: aot.FxProgramsBuilder, saved: Path, tmp_path: Path
) -> None:
    loaded = aot.FxPrograms.load(saved)
    other = tmp_path / "other"
    other.mkdir()
    assert loaded.save(other / "again.json") == 12
    again = aot.FxPrograms.load(other / "again.json")
    assert str(aot.export(again).mlir_module) == str(aot.export(programs).mlir_module)
    tokens = torch.tensor([3, 1])
    found = again.programs["prefill"].target.module()(tokens)
    assert_same(found, shared.prefill(shared.Model(), tokens))


def test_changing_a_loaded_tensor_does_not_change_the_file(saved: Path) -> None:
    before = archive_of(saved).read_bytes()
    loaded = aot.FxPrograms.load(saved).programs["decode"].target
    loaded.state_dict["root.cache"].fill_(7)
    assert archive_of(saved).read_bytes() == before


def test_files_can_be_moved_together(saved: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in (saved.name, archive_of(saved).name):
        shutil.move(saved.with_name(name), moved)
    assert list(aot.FxPrograms.load(moved / "lm.json").programs) == ["length", "prefill", "decode"]


def test_another_process_without_the_model_exports_the_same_bytes(
    programs: aot.FxProgramsBuilder, saved: Path, tmp_path: Path
) -> None:
    code = (
        "import sys; from pelton import aot\n"
        "aot.export(aot.FxPrograms.load(sys.argv[1])).save_mlir(sys.argv[2])"
    )
    command = [sys.executable, "-c", code, str(saved), str(tmp_path / "there.mlirbc")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    aot.export(programs).save_mlir(tmp_path / "here.mlirbc")
    assert (tmp_path / "there.mlirbc").read_bytes() == (tmp_path / "here.mlirbc").read_bytes()


def test_constants_of_programs_may_differ_under_one_name(tmp_path: Path) -> None:
    builder = aot.FxProgramsBuilder(nn.Identity())
    for name, value in (("one", 1.0), ("two", 2.0)):
        constant = torch.full((4,), value)
        builder.export_program(
            lambda module, x, constant=constant: module(x) + constant,
            args=(X,), kwargs={"constant": constant}, name=f"given_{name}", strict=False,
        )  # fmt: skip
        builder.export_program(_adder(constant), args=(X,), name=name, strict=False)
    assert builder.save(tmp_path / "p.json") == 0
    executable = through_files(aot.export(aot.FxPrograms.load(tmp_path / "p.json")), tmp_path)
    assert_same((executable.one(X), executable.two(X)), (X + 1, X + 2))


def _adder(constant: torch.Tensor) -> Callable[..., torch.Tensor]:
    return lambda module, x: module(x) + constant


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    label: str = "p"


def test_traits_devices_and_unknown_classes_survive(tmp_path: Path) -> None:
    model = nn.Linear(4, 3)
    aot.externalize_module_parameters(model, external_scope="m")
    aot.DeviceTensorTrait(1).set(model.weight)
    builder = aot.FxProgramsBuilder(model)
    builder.export_program(
        lambda module, point: Point(module(point.x)),
        args=(Point(X),), dynamic_shapes=({"x": {0: "rows"}},), name="move", strict=False,
        arg_device={0: aot.DeviceAffinity(1, [0, 2])},
    )  # fmt: skip
    builder.save(tmp_path / "p.json")
    loaded = aot.FxPrograms.load(tmp_path / "p.json")
    out = aot.export(loaded)
    assert str(out.mlir_module) == str(aot.export(builder).mlir_module)
    assert set(out.parameters["m"]) == {"weight", "bias"}
    out.save_parameters(tmp_path / "m.safetensors")
    text = str(out.mlir_module)
    assert "#hal.device.promise<@__device_1, [0, 2]>" in text
    assert "stream.affinity = #hal.device.promise<@__device_1>" in text
    assert loaded.programs["move"].target.state_dict["root.bias"].requires_grad


def test_models_without_data_are_saved_without_any(tmp_path: Path) -> None:
    with torch.device("meta"):
        builder = aot.FxProgramsBuilder(nn.Linear(4, 3))
    builder.export_program(lambda module, x: module(x), args=(X,), name="f", strict=False)
    builder.save(tmp_path / "p.json")
    loaded = aot.export(aot.FxPrograms.load(tmp_path / "p.json"), external_parameters=True)
    expected = aot.export(builder, external_parameters=True)
    assert str(loaded.mlir_module) == str(expected.mlir_module)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.bool, torch.uint16])
def test_tensors_of_other_types_are_kept_bit_by_bit(dtype: torch.dtype, tmp_path: Path) -> None:
    model = nn.Module()
    model.register_buffer("odd", torch.ones(1, dtype=torch.bool))  # what follows is not aligned
    model.register_buffer("values", torch.tensor([0, 1, 1, 0, 1]).to(dtype))
    model.register_buffer("scalar", torch.tensor(1).to(dtype))
    model.register_buffer("empty", torch.zeros(0, 3).to(dtype))
    builder = aot.FxProgramsBuilder(model)
    builder.export_program(lambda m: m.values.float(), name="f", strict=False)
    builder.save(tmp_path / "p.json")
    loaded = aot.FxPrograms.load(tmp_path / "p.json").programs["f"].target.state_dict
    for name, tensor in model.named_buffers():
        found = loaded[f"root.{name}"]
        assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
        assert found.float().equal(tensor.float())


# Whole or not at all


def test_saving_again_replaces_the_archive(
    programs: aot.FxProgramsBuilder, saved: Path, tmp_path: Path
) -> None:
    old = archive_of(saved)
    other = shared.Model()
    other.words.weight.data += 1
    shared.build(other).save(saved)
    assert names(tmp_path) == sorted(["lm.json", archive_of(saved).name])
    assert archive_of(saved) != old
    weight = aot.FxPrograms.load(saved).programs["decode"].target.state_dict["root.words.weight"]
    assert weight.equal(other.words.weight)


def test_a_failed_save_leaves_what_was_there(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = shared.Model()
    other.words.weight.data += 1
    builder = shared.build(other)

    def fail(*_: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patched:
        patched.setattr(fx_files, "atomic_write", fail)
        with pytest.raises(OSError, match="no space"):
            builder.save(saved)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_program_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    builder = aot.FxProgramsBuilder(nn.Linear(4, 3))
    builder.export_program(lambda module, x: module(x), args=(X,), name="f", strict=False)
    builder.programs["f"].target.constants["thing"] = object()  # type: ignore[assignment]
    with pytest.raises(aot.ExportError, match="program 'f' cannot be saved: constant 'thing'"):
        builder.save(tmp_path / "p.json")
    assert names(tmp_path) == []


@pytest.mark.parametrize("place", ["", "missing/p.json"])
def test_a_place_that_cannot_be_written_is_one_clear_error(
    place: str, programs: aot.FxProgramsBuilder, tmp_path: Path
) -> None:
    with pytest.raises(aot.ArtifactError, match=r"it is a folder|folder .* does not exist"):
        programs.save(tmp_path / place)
    assert names(tmp_path) == []


# Damaged and hostile files


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda p: p.unlink(), "no such file"),
    "no JSON": (lambda p: p.write_text("{"), "is no description of programs"),
    "another file": (lambda p: p.write_text('{"a": 1}'), "is no description of programs"),
    "a list": (lambda p: p.write_text("[]"), "is no description of programs"),
    "changed": (
        lambda p: p.write_text(p.read_text().replace('"decode"', '"encode"')),
        "its contents are not those that were written",
    ),
    "newer": (
        lambda p: p.write_text(p.read_text().replace('"format": 1', '"format": 2', 1)),
        "is of format 2, this version of Pelton reads format 1",
    ),
    "archive missing": (lambda p: archive_of(p).unlink(), "is missing; move both files together"),
    "archive changed": (lambda p: flip(archive_of(p), -1), "is damaged or was replaced"),
    "archive cut": (
        lambda p: archive_of(p).write_bytes(archive_of(p).read_bytes()[:-8]),
        "is damaged or was replaced",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_one_clear_error(damage: str, saved: Path) -> None:
    act, message = DAMAGES[damage]
    act(saved)
    with pytest.raises(aot.ArtifactError, match=message):
        aot.FxPrograms.load(saved)


def test_a_folder_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(aot.ArtifactError, match="cannot read"):
        aot.FxPrograms.load(tmp_path)


def program_of(body: dict[str, Any], name: str) -> Any:
    return next(item for item in body["programs"] if item["name"] == name)


def set_size(body: dict[str, Any], text: str) -> None:
    """Replace each size expression of a program by a text."""
    waiting: list[Any] = [program_of(body, "prefill")["graph"]]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "expr_str" in item:
                item["expr_str"] = text
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def first_node(body: dict[str, Any]) -> Any:
    return program_of(body, "prefill")["graph"]["graph_module"]["graph"]["nodes"][0]


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a call in a size": (
        lambda body: set_size(body, "__import__('os').mkdir('owned')"),
        "no expression of sizes",
    ),
    "a call in a text in a size": (
        lambda body: set_size(body, "Max(\"__import__('os').mkdir('owned')\", Integer(1))"),
        "no expression of sizes",
    ),
    "an attribute in a size": (
        lambda body: set_size(body, "Integer(1).__class__"),
        "no expression of sizes",
    ),
    "a function that is no operator": (
        lambda body: first_node(body).update(target="torch.load"),
        "torch.load|no graph that torch",
    ),
    "an unknown operator": (
        lambda body: first_node(body).update(target="torch.ops.nowhere.nothing.default"),
        "no graph that torch",
    ),
    "an archive elsewhere": (
        lambda body: body["archive"].update(file="../lm.safetensors"),
        "does not lie beside it",
    ),
    "a tensor that is not there": (
        lambda body: body["tensors"].update(other=body["tensors"]["root.cache"]),
        "has no tensor 'other'",
    ),
    "a tensor of another shape": (
        lambda body: body["tensors"]["root.cache"].update(shape=[1, 2]),
        r"should be float32\[1, 2\]",
    ),
    "a tensor of no type": (
        lambda body: body["tensors"]["root.cache"].update(dtype="load"),
        r"should be load",
    ),
    "no tensors": (lambda body: body.pop("tensors"), "is damaged: KeyError"),
    "a signature of text": (
        lambda body: program_of(body, "prefill").update(signature="x"),
        "not a signature",
    ),
    "another schema": (
        lambda body: program_of(body, "prefill")["graph"]["schema_version"].update(major=999),
        "no graph that torch .* reads .*export the programs again",
    ),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_file_is_refused_and_runs_nothing(
    attack: str, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved.parent)
    change, message = HOSTILE[attack]
    rewrite(saved, change)
    with pytest.raises(aot.ArtifactError, match=message):
        aot.FxPrograms.load(saved)
    assert not Path("owned").exists()


def test_no_pickle_is_written(saved: Path) -> None:
    kept = archive_of(saved).read_bytes()
    assert kept[8:9] == b"{"  # safetensors: a length and JSON
    assert b"torch.storage" not in kept + saved.read_bytes()
