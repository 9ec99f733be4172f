"""Executables: calls, results, metadata and parameters."""

import inspect
import json
import platform
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pelton import runtime
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.errors import ArtifactError, DeviceError, ParameterError, SignatureError

from .conftest import Compiled
from .programs import ELEMENT_TYPES, Pair

ONES = torch.ones(4)


def refusal(error: type[Exception], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(error) as caught:
        runtime.load(*args, **kwargs)
    return str(caught.value)


# Calls


def test_torch_in_gives_torch_out(compiled: Compiled) -> None:
    result = runtime.load(compiled("add_one"))(ONES)
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [2, 2, 2, 2]


def test_numpy_in_gives_numpy_out(compiled: Compiled) -> None:
    result = runtime.load(compiled("add_one"))(np.ones(4, np.float32))
    assert isinstance(result, np.ndarray)
    assert result.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("name", ELEMENT_TYPES)
@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_element_type_of_a_result_is_that_of_the_program(
    compiled: Compiled, name: str, library: str
) -> None:
    exe = runtime.load(compiled("doubled"))
    given = [torch.tensor([0, 1, 1]).to(getattr(torch, each)) for each in ELEMENT_TYPES]
    index = ELEMENT_TYPES.index(name)
    expected = ~given[index] if name == "bool" else given[index] * 2
    if library == "torch":
        result = exe(*given)[index]
        assert result.dtype is expected.dtype
        assert torch.equal(result, expected)
    else:
        arrays = [
            tensor.view(torch.uint8).numpy().view(DTYPES[each].numpy)
            for tensor, each in zip(given, ELEMENT_TYPES, strict=True)
        ]
        result = exe(*arrays)[index]
        assert result.dtype == DTYPES[name].numpy
        assert result.tobytes() == expected.view(torch.uint8).numpy().tobytes()


def test_first_tensor_decides_the_kind_of_the_results(compiled: Compiled) -> None:
    exe = runtime.load(compiled("add_rows"))
    tensor, array = torch.ones(2, 4), np.ones((2, 4), np.float32)
    assert isinstance(exe(tensor, array), torch.Tensor)
    assert isinstance(exe(array, tensor), np.ndarray)
    assert exe(array, tensor).tolist() == (tensor * 2).tolist()


def test_structure_defaults_and_keywords_pass_both_ways(compiled: Compiled) -> None:
    exe = runtime.load(compiled("structured"))
    x, shift = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0])
    pair = Pair(torch.tensor([3.0, 4.0]), torch.tensor([5.0, 6.0, 7.0]))
    result = exe(x, {"shift": shift}, pair=pair, label="plain")
    assert list(result) == ["sum", "swapped", "rest"]
    assert result["sum"].tolist() == [13, 26]
    assert isinstance(result["swapped"], Pair)
    assert [each.tolist() for each in result["swapped"]] == [[5, 6, 7], [3, 4]]
    assert result["rest"][:2] == [None, 5]
    assert result["rest"][2].tolist() == [2, 3]


def test_other_constant_than_at_export_is_refused(compiled: Compiled) -> None:
    exe = runtime.load(compiled("structured"))
    x = torch.zeros(2)
    with pytest.raises(SignatureError, match=r"main\(\): argument factor was fixed to 3"):
        exe(x, {"shift": x}, Pair(x, torch.zeros(3)), 4)


@pytest.mark.parametrize("number", [1, np.int64(7), 100])
def test_number_is_an_input_and_a_result(compiled: Compiled, number: Any) -> None:
    result, same = runtime.load(compiled("plus_number"))(ONES, number)
    assert result.tolist() == [1 + number] * 4
    assert (type(same), same) == (int, number)


def test_number_outside_its_range_is_refused(compiled: Compiled) -> None:
    with pytest.raises(SignatureError, match=r"argument n \('n'\) is 101, outside its range 1\.\."):
        runtime.load(compiled("plus_number"))(ONES, 101)


def test_inputs_that_disagree_are_refused_before_anything_runs(compiled: Compiled) -> None:
    exe = runtime.load(compiled("add_rows"))
    with pytest.raises(SignatureError) as caught:
        exe(torch.ones(8, 4), torch.ones(1, 4))
    assert str(caught.value) == (
        "main(): argument y: dimension 0 ('batch') is 1, but dimension 0 of argument x is 8; "
        "both must be equal"
    )


def test_derived_size_that_no_dimension_gives_is_refused(compiled: Compiled) -> None:
    exe = runtime.load(compiled("of_twice_a_dimension"))
    assert exe(torch.zeros(6)).shape == (6,)
    with pytest.raises(SignatureError, match=r"dimension 0 must be 2\*half, got 7"):
        exe(torch.zeros(7))


# Entry points


def test_only_entry_point_is_called_through_the_executable(compiled: Compiled) -> None:
    exe = runtime.load(compiled("add_one"))
    assert list(exe.functions) == ["main"]
    for call in (exe, exe.main, exe.functions["main"]):
        assert call(ONES).tolist() == [2, 2, 2, 2]


def test_several_entry_points_are_called_by_name(compiled: Compiled) -> None:
    exe = runtime.load(compiled("two_entry_points"))
    x = torch.tensor([3.0])
    assert (exe.double(x).item(), exe.square(x).item()) == (6, 9)
    assert {"double", "square"} <= set(dir(exe))


def test_one_of_several_entry_points_must_be_named(compiled: Compiled) -> None:
    exe = runtime.load(compiled("two_entry_points"))
    message = "there are 2 entry points; call one by name: double, square"
    for ask in (lambda: exe(ONES), lambda: exe.input_infos, lambda: inspect.signature(exe)):
        with pytest.raises(SignatureError) as caught:
            ask()
        assert str(caught.value) == message


def test_unknown_entry_point_is_refused_with_the_known_ones(compiled: Compiled) -> None:
    exe = runtime.load(compiled("two_entry_points"))
    with pytest.raises(AttributeError, match=r"no entry point 'cube'; there are: double, square"):
        _ = exe.cube


def test_entry_points_cannot_be_replaced(compiled: Compiled) -> None:
    exe = runtime.load(compiled("add_one"))
    with pytest.raises(TypeError):
        exe.functions["other"] = exe.main  # type: ignore[index]


def test_module_without_signatures_is_refused(compiled: Compiled) -> None:
    path = compiled("without_signature")
    assert refusal(ArtifactError, path) == (
        f"{path} has no entry point with a Pelton signature; "
        "compile it with pelton, or run it with IREE's own tools"
    )


# Metadata of an executable


def test_python_signature_is_that_of_the_function(compiled: Compiled) -> None:
    exe = runtime.load(compiled("structured"))
    text = "(x, options, pair, factor=3, *, label='plain')"
    assert str(inspect.signature(exe)) == text
    assert str(inspect.signature(exe.functions["main"])) == text


def test_inputs_are_described_by_path(compiled: Compiled) -> None:
    infos = runtime.load(compiled("structured")).input_infos
    assert list(infos) == ["x", "options['shift']", "pair.left", "pair.right"]


def test_text_of_an_executable_lists_its_entry_points(compiled: Compiled) -> None:
    exe = runtime.load(compiled("two_entry_points"), device="local-task")
    assert str(exe) == (
        "Executable on local-task:\n"
        "  double(x: float32[n]) -> (float32[n]) where n=1..8\n"
        "  square(x: float32[n]) -> (float32[n]) where n=1..8"
    )
    assert str(exe.double) == "double(x: float32[n]) -> (float32[n]) where n=1..8"
    assert exe.double.name == "double"


def test_artifact_states_what_it_was_made_for_and_by(compiled: Compiled) -> None:
    info = runtime.load(compiled("weighted"), parameters=compiled("weighted").with_suffix(".irpa"))
    assert info.info.target["backend"] == "llvm-cpu"
    assert info.info.target["arch"] == platform.machine()
    assert {"pelton", "iree-base-compiler"} <= set(info.info.versions)
    assert info.info.parameters == {"model": {"weight": (DTYPES["float32"], (4,))}}


def test_processor_has_no_stream(compiled: Compiled) -> None:
    assert runtime.load(compiled("add_one")).stream is None


# Parameters


def test_parameters_come_from_an_archive_or_from_memory(compiled: Compiled) -> None:
    path = compiled("weighted")
    for parameters in (
        path.with_suffix(".irpa"),
        [path.with_suffix(".irpa")],
        {"weight": torch.arange(4.0)},
        {"model": {"weight": np.arange(4, dtype=np.float32)}},
    ):
        result, weight = runtime.load(path, parameters=parameters)(ONES)
        assert result.tolist() == [1, 2, 3, 4]
        assert weight.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("parameters", [None, {"weight": torch.zeros(5)}, {"other": torch.ones(4)}])
def test_parameters_that_do_not_fit_are_refused(compiled: Compiled, parameters: Any) -> None:
    message = refusal(ParameterError, compiled("weighted"), parameters=parameters)
    assert "the parameters do not fit the program" in message
    assert "weight" in message


# Saving, and loading from memory


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_module_is_loaded_from_memory(compiled: Compiled, make: Any) -> None:
    exe = runtime.load(make(compiled("add_one").read_bytes()))
    assert exe(ONES).tolist() == [2, 2, 2, 2]


def test_module_loaded_from_memory_is_saved_as_it_was(compiled: Compiled, tmp_path: Path) -> None:
    data = compiled("add_one").read_bytes()
    runtime.load(data).save(tmp_path / "saved.vmfb")
    assert (tmp_path / "saved.vmfb").read_bytes() == data


def test_saved_module_is_loaded_and_called(compiled: Compiled, tmp_path: Path) -> None:
    runtime.load(compiled("add_one")).save(tmp_path / "saved.vmfb")
    loaded = runtime.Executable.load(tmp_path / "saved.vmfb")
    assert loaded(ONES).tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("fate", ["removed", "replaced"])
def test_module_can_be_saved_after_its_file_is_gone(
    compiled: Compiled, tmp_path: Path, fate: str
) -> None:
    path = tmp_path / "m.vmfb"
    shutil.copy(compiled("add_one"), path)
    exe = runtime.load(path)
    data = path.read_bytes()
    path.unlink()
    if fate == "replaced":
        path.write_bytes(b"something else")
    exe.save(path)
    assert path.read_bytes() == data
    assert exe(ONES).tolist() == [2, 2, 2, 2]


def test_loading_from_memory_leaves_no_file(
    compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    exe = runtime.load(compiled("add_one").read_bytes())
    with pytest.raises(ArtifactError):
        runtime.load(b"damaged")
    assert list(tmp_path.iterdir()) == []
    assert exe(ONES).tolist() == [2, 2, 2, 2]


# Devices


def test_program_runs_on_the_device_that_was_named(compiled: Compiled) -> None:
    exe = runtime.load(compiled("add_one"), device="local-sync")
    assert exe.device == "local-sync"
    assert exe(ONES).tolist() == [2, 2, 2, 2]


def test_unknown_device_is_refused(compiled: Compiled) -> None:
    assert refusal(DeviceError, compiled("add_one"), device="quantum").startswith(
        "unknown device 'quantum'; known: cpu, "
    )


def with_info(path: Path, copied: Path, **fields: Any) -> Path:
    """Copy a module with other fields in what it says of itself."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copied, "w") as new:
        for member in old.infolist():
            data = old.read(member)
            if member.filename == "pelton.json":
                data = json.dumps({**json.loads(data), **fields}).encode()
            new.writestr(member, data)
    return copied


def test_module_for_another_architecture_is_refused(compiled: Compiled, tmp_path: Path) -> None:
    target = {"backend": "llvm-cpu", "arch": "riscv64"}
    path = with_info(compiled("add_one"), tmp_path / "m.vmfb", target=target)
    assert refusal(DeviceError, path) == (
        f"{path} was compiled for riscv64, this machine is {platform.machine()}"
    )


def test_module_for_features_that_this_processor_lacks_is_refused(
    compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pelton.runtime.device.cpu.cpu_features", lambda: {"sse2": True, "jumping": False}
    )
    target = {"arch": platform.machine(), "cpu": "jumper", "features": ["sse2", "jumping"]}
    path = with_info(compiled("add_one"), tmp_path / "m.vmfb", target=target)
    assert "features that this one lacks: jumping" in refusal(DeviceError, path)


def test_module_for_an_unknown_backend_needs_a_device(compiled: Compiled, tmp_path: Path) -> None:
    path = with_info(compiled("add_one"), tmp_path / "m.vmfb", target={"backend": "abacus"})
    assert refusal(DeviceError, path) == (
        f"{path} was compiled for 'abacus'; name the device to run it on"
    )


def test_module_of_another_format_version_is_refused(compiled: Compiled, tmp_path: Path) -> None:
    path = with_info(compiled("add_one"), tmp_path / "m.vmfb", format=99)
    assert f"{path}: format 99 of pelton.json, this version" in refusal(ArtifactError, path)
