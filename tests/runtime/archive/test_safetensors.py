"""safetensors archives: golden bytes, and files of the safetensors package."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch

from pelton.runtime.archive import open_archive, write_archive
from pelton.runtime.archive import safetensors as own_format
from pelton.runtime.archive.parameter import Parameter, parameter_of
from pelton.runtime.errors import ArtifactError, ParameterError
from tests.runtime.archives import WEIGHT, varied_parameters

HEADER = (
    b'{"__metadata__":{"format":"pt","tied":"a"},'
    b'"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}'
)
GOLDEN = (120).to_bytes(8, "little") + HEADER.ljust(120) + b"\5\7"


def read(data: bytes) -> dict[str, Parameter]:
    return {p.name: p for p in own_format.read(np.frombuffer(data, np.uint8))}


def made(contents: bytes = b"\5\7", **tensors: object) -> bytes:
    header = json.dumps(tensors).encode()
    return len(header).to_bytes(8, "little") + header + contents


def test_file_has_the_golden_bytes(tmp_path: Path) -> None:
    array = np.array([5, 7], np.int8)
    path = tmp_path / "a.safetensors"
    write_archive(path, [parameter_of("a", array), parameter_of("tied", array)])
    assert path.read_bytes() == GOLDEN


def test_all_parameters_come_back_as_they_were(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.safetensors", varied_parameters())
    found = open_archive(tmp_path / "a.safetensors")
    for p in varied_parameters():
        assert (found[p.name].type_name, found[p.name].shape) == (p.type_name or "uint8", p.shape)
        assert found[p.name].contents().tobytes() == p.contents().tobytes()


def test_file_is_read_by_the_safetensors_package(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {"a": torch.randn(3, 5).t(), "b": torch.randn(3).bfloat16(), "c": torch.tensor(True)}
    write_archive(path, [parameter_of(name, tensor) for name, tensor in tensors.items()])
    found = safetensors.torch.load_file(path)
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_every_file_that_is_written_is_sound_to_the_safetensors_package(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.safetensors", varied_parameters())
    with safetensors.safe_open(tmp_path / "a.safetensors", "np") as file:
        assert {*file.keys(), "tied"} == {p.name for p in varied_parameters()}


def test_file_of_the_safetensors_package_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {"a": torch.randn(3, 5), "b": torch.randn(3).to(torch.float8_e4m3fn)}
    safetensors.torch.save_file(tensors, path)
    found = open_archive(path)
    for name, tensor in tensors.items():
        expected = parameter_of(name, tensor)
        assert found[name].dtype is expected.dtype
        assert found[name].contents().tobytes() == expected.contents().tobytes()


def test_tied_weights_of_safetensors_load_under_both_names(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    module[1].weight = module[0].weight
    safetensors.torch.save_model(module, str(tmp_path / "theirs.safetensors"))
    assert set(open_archive(tmp_path / "theirs.safetensors")) == set(module.state_dict())

    ours = tmp_path / "ours.safetensors"
    write_archive(ours, [parameter_of(n, t) for n, t in module.state_dict().items()])
    copy = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    copy[1].weight = copy[0].weight
    safetensors.torch.load_model(copy, str(ours))
    assert torch.equal(copy[1].weight, module[0].weight)


def test_contents_of_whole_cache_lines_are_aligned_to_them(tmp_path: Path) -> None:
    sizes = [3, 64, 5, 128, 1]
    parameters = [parameter_of(f"p{n}", np.zeros(n, np.uint8)) for n in sizes]
    write_archive(tmp_path / "a.safetensors", parameters)
    found = open_archive(tmp_path / "a.safetensors")
    assert [found[f"p{n}"].contents().ctypes.data % 64 for n in (64, 128)] == [0, 0]


def test_type_without_a_code_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"cannot hold .*: big \(complex128 2\)"):
        write_archive(tmp_path / "a.safetensors", [parameter_of("big", np.zeros(2, complex))])


def test_packed_tensor_that_ends_within_a_byte_is_not_written(tmp_path: Path) -> None:
    odd = parameter_of("odd", np.zeros(3, ml_dtypes.float4_e2m1fn))
    with pytest.raises(ParameterError, match=r"odd \(float4_e2m1fn 3\)"):
        write_archive(tmp_path / "a.safetensors", [odd])


def test_name_of_the_metadata_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="__metadata__"):
        write_archive(tmp_path / "a.safetensors", [parameter_of("__metadata__", WEIGHT)])


def test_unknown_element_type_is_refused_when_it_is_used() -> None:
    found = read(made(a={"dtype": "F6_E2M3", "shape": [2], "data_offsets": [0, 2]}))["a"]
    with pytest.raises(ParameterError, match=r"a \(F6_E2M3 2\)"):
        found.array()


def test_sharded_archive_is_read_by_its_index(tmp_path: Path) -> None:
    names = {"a": "one.safetensors", "b": "two.safetensors"}
    for name, file in names.items():
        write_archive(tmp_path / file, [parameter_of(name, WEIGHT), parameter_of("other", WEIGHT)])
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 48}, "weight_map": names}))
    found = open_archive(index)
    assert list(found) == ["a", "b"]
    np.testing.assert_array_equal(found["b"].array(), WEIGHT)


@pytest.mark.parametrize("file", ["../x.safetensors", "/etc/passwd", "a\\b.safetensors", "..", 3])
def test_index_cannot_name_files_outside_its_folder(tmp_path: Path, file: object) -> None:
    index = tmp_path / "model.index.json"
    index.write_text(json.dumps({"weight_map": {"a": file}}))
    with pytest.raises(ArtifactError, match="not a file of the same folder"):
        open_archive(index)


def test_index_that_lists_what_a_shard_lacks_is_refused(tmp_path: Path) -> None:
    write_archive(tmp_path / "one.safetensors", [parameter_of("a", WEIGHT)])
    index = tmp_path / "model.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}}))
    with pytest.raises(ArtifactError, match=r"lists b in one\.safetensors"):
        open_archive(index)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"weight_map": 3}'])
def test_broken_index_is_refused(tmp_path: Path, text: str) -> None:
    index = tmp_path / "model.index.json"
    index.write_text(text)
    with pytest.raises(ArtifactError, match=r"model\.index\.json is not an index"):
        open_archive(index)


TENSOR = {"dtype": "I8", "shape": [2], "data_offsets": [0, 2]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GOLDEN[:7], "ends within the length"),
        (GOLDEN[:60], "header claims 120 bytes of 60"),
        (b"\xff" * 8 + GOLDEN[8:], "header claims"),
        (GOLDEN.replace(b"{", b"[", 1), "is not JSON"),
        ((9).to_bytes(8, "little") + b"[" * 9, "is not JSON"),
        (len(HEADER).to_bytes(8, "little") + b"[" * len(HEADER), "is not JSON"),
        (GOLDEN.replace(b'"tied":"a"', b'"tied":"\xff"'), "is not JSON"),
        (made(a=TENSOR | {"data_offsets": [0, 3]}), r"offsets \[0, 3\]"),
        (made(a=TENSOR | {"data_offsets": [-1, 1]}), "offsets"),
        (made(a=TENSOR | {"data_offsets": [True, 2]}), "offsets"),
        (made(a=TENSOR | {"data_offsets": [0, 1]}), "takes 2 bytes, but has 1"),
        (made(a=TENSOR | {"shape": [-2]}), "not a list of sizes"),
        (made(a=TENSOR | {"shape": [1 << 70, 0]}), "more than memory holds"),
        (made(a=TENSOR | {"shape": [1] * 40}), "40 dimensions"),
        (made(a=TENSOR | {"dtype": 3}), "no element type"),
        (made(a=[]), "describes 'a' by"),
        (made(a=TENSOR, b=TENSOR), "start at byte 0, not at 2"),
        (made(b"123", a=TENSOR), "contents are 3 bytes, not 2"),
        (made(__metadata__=3, a=TENSOR), "__metadata__"),
        (made(a=TENSOR, bb=TENSOR).replace(b'"bb"', b'"a" '), "more than once: 'a'"),
    ],
)
def test_broken_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read(data)


def test_header_nested_without_end_is_refused() -> None:
    data = (200_000).to_bytes(8, "little") + b'{"a":' * 40_000
    with pytest.raises(ArtifactError, match="is not JSON"):
        read(data)
