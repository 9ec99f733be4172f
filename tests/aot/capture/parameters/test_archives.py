from pathlib import Path

import numpy as np
import pytest
import torch
from iree.runtime import ParameterIndex
from torch import nn

from pelton.aot.capture.parameters.archives import (
    ParameterArchive,
    ParameterArchiveBuilder,
    ParameterArchiveEntry,
    save_module_parameters,
)
from pelton.runtime.archive import open_archive, write_archive
from pelton.runtime.archive.parameter import Parameter
from pelton.runtime.errors import ArtifactError, ParameterError

TYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
]  # fmt: skip


def saved(folder: Path, **tensors: torch.Tensor) -> Path:
    builder = ParameterArchiveBuilder()
    for name, tensor in tensors.items():
        builder.add_tensor(name, tensor)
    return builder.save(folder / "a.irpa")


def as_bytes(tensor: torch.Tensor) -> list[int]:
    return tensor.contiguous().reshape(-1).view(torch.uint8).tolist()


@pytest.mark.parametrize("name", TYPES)
def test_tensor_of_every_type_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    dtype = getattr(torch, name)
    tensor = torch.arange(2 * 3 * dtype.itemsize, dtype=torch.uint8)
    tensor = (tensor % 2 if name == "bool" else tensor).view(dtype).reshape(2, 3)
    found = ParameterArchive(saved(tmp_path, a=tensor))["a"].as_tensor()
    assert (found.dtype, found.shape) == (dtype, tensor.shape)
    assert as_bytes(found) == as_bytes(tensor)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e5m2, torch.bool])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_scalar_and_empty_tensors_come_back(
    tmp_path: Path, dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    found = ParameterArchive(saved(tmp_path, a=torch.ones(shape).to(dtype)))["a"].as_tensor()
    assert (found.dtype, found.shape) == (dtype, shape)
    assert found.to(torch.float32).sum() == torch.ones(shape).sum()


def test_non_contiguous_tensor_comes_back_by_value(tmp_path: Path) -> None:
    tensor = torch.randn(4, 6).t()[1:, ::2]
    assert torch.equal(ParameterArchive(saved(tmp_path, a=tensor))["a"].as_tensor(), tensor)


def test_float4_scalar_of_torch_comes_back_as_its_pair(tmp_path: Path) -> None:
    tensor = torch.tensor(0x21, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    found = ParameterArchive(saved(tmp_path, a=tensor))["a"].as_tensor()
    assert as_bytes(found) == [0x21]


def test_flat_tensor_is_the_bytes(tmp_path: Path) -> None:
    path = saved(tmp_path, a=torch.tensor([1, 258], dtype=torch.int16))
    assert ParameterArchive(path)["a"].as_flat_tensor().tolist() == [1, 0, 2, 1]


def test_blob_has_bytes_but_no_tensor(tmp_path: Path) -> None:
    builder = ParameterArchiveBuilder()
    builder.add_blob("tokens", np.array([1, 2], np.int16))
    entry = ParameterArchive(builder.save(tmp_path / "a"))["tokens"]
    assert entry.as_flat_tensor().tolist() == [1, 0, 2, 0]
    with pytest.raises(ParameterError, match=r"'tokens' \(blob of 4 bytes\) has no metadata"):
        entry.as_tensor()


def test_splat_is_expanded_and_its_flat_tensor_is_the_pattern(tmp_path: Path) -> None:
    pattern = np.float32([2.5]).view(np.uint8)
    write_archive(tmp_path / "a.irpa", [Parameter("s", "float32", (3, 4), 48, pattern, True)])
    entry = ParameterArchive(tmp_path / "a.irpa")["s"]
    assert entry.as_flat_tensor().tolist() == pattern.tolist()
    assert torch.equal(entry.as_tensor(), torch.full((3, 4), 2.5))


@pytest.mark.parametrize(
    ("pattern", "values"), [(b"\1", [257, 257]), (b"\1\0\2\0", [1, 2])], ids=["short", "long"]
)
def test_splat_pattern_need_not_be_one_element(
    tmp_path: Path, pattern: bytes, values: list[int]
) -> None:
    data = np.frombuffer(pattern, np.uint8)
    write_archive(tmp_path / "a.irpa", [Parameter("s", "int16", (2,), 4, data, True)])
    assert ParameterArchive(tmp_path / "a.irpa")["s"].as_tensor().tolist() == values


def test_type_that_torch_lacks_is_refused_by_name(tmp_path: Path) -> None:
    packed = Parameter("p", "int4", (2,), 1, np.zeros(1, np.uint8))
    write_archive(tmp_path / "a.irpa", [packed])
    with pytest.raises(ParameterError, match=r"'p' \(int4 2\): torch has no such tensors"):
        ParameterArchive(tmp_path / "a.irpa")["p"].as_tensor()


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_unknown_dtype_is_refused_when_it_is_added() -> None:
    with pytest.raises(ParameterError, match="'c' has element type complex32"):
        ParameterArchiveBuilder().add_tensor("c", torch.zeros(2, dtype=torch.complex32))


def test_archive_is_a_mapping_in_the_order_of_the_file(tmp_path: Path) -> None:
    archive = ParameterArchive(saved(tmp_path, b=torch.zeros(1), a=torch.ones(1)))
    assert (list(archive), archive.keys(), len(archive)) == (["b", "a"], ["b", "a"], 2)
    assert "a" in archive and "c" not in archive
    assert [(key, entry.key) for key, entry in archive.items()] == [("b", "b"), ("a", "a")]
    assert "`b`" in repr(archive)
    with pytest.raises(KeyError, match="no parameter 'c'; there are b, a"):
        archive["c"]


def test_files_add_up(tmp_path: Path) -> None:
    archive = ParameterArchive()
    archive.load(saved(tmp_path, a=torch.zeros(1)))
    builder = ParameterArchiveBuilder()
    builder.add_tensor("b", torch.ones(1))
    archive.load(builder.save(tmp_path / "b.safetensors"))
    assert archive.keys() == ["a", "b"]
    assert archive["b"].as_tensor().item() == 1


def test_name_that_an_earlier_file_had_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, a=torch.zeros(1))
    archive = ParameterArchive(path)
    with pytest.raises(ParameterError, match="has already: 'a'"):
        archive.load(path)


def test_broken_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.irpa").write_bytes(b"IRPA" + bytes(200))
    with pytest.raises(ArtifactError, match="not a valid IREE parameter archive"):
        ParameterArchive(tmp_path / "a.irpa")


@pytest.mark.parametrize("mmap", [True, False])
def test_change_of_a_tensor_does_not_reach_the_file(tmp_path: Path, mmap: bool) -> None:
    path = saved(tmp_path, a=torch.ones(3))
    archive = ParameterArchive(path, mmap=mmap)
    archive["a"].as_tensor().zero_()
    assert archive["a"].as_tensor().tolist() == [0, 0, 0]
    assert open_archive(path)["a"].array().tolist() == [1, 1, 1]


def test_change_of_a_tensor_reaches_the_file_of_a_writable_archive(tmp_path: Path) -> None:
    path = saved(tmp_path, a=torch.ones(3))
    ParameterArchive(path, writable=True)["a"].as_tensor().zero_()
    assert open_archive(path)["a"].array().tolist() == [0, 0, 0]


def test_writable_archive_must_be_mapped(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="needs mmap=True"):
        ParameterArchive(tmp_path / "a.irpa", mmap=False, writable=True)


def test_entry_of_an_index_without_memory_is_refused(tmp_path: Path) -> None:
    index = ParameterIndex()
    index.load(str(saved(tmp_path, a=torch.ones(3))), mode="file_async")
    with pytest.raises(ValueError, match="cannot be mapped"):
        ParameterArchiveEntry(dict(index.items())["a"]).as_tensor()


def test_entry_of_an_index_that_iree_loaded_is_copied(tmp_path: Path) -> None:
    index = ParameterIndex()
    index.load(str(saved(tmp_path, a=torch.ones(3))))
    entry = ParameterArchiveEntry(dict(index.items())["a"])
    entry.as_tensor().zero_()
    assert entry.as_tensor().tolist() == [1, 1, 1]
    assert "PYTORCH" in repr(entry)


@pytest.mark.parametrize("prefix", ["", "net"])
def test_module_is_saved_under_its_state_dict_keys(tmp_path: Path, prefix: str) -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    module.register_buffer("scratch", torch.zeros(3), persistent=False)
    archive = ParameterArchive(save_module_parameters(tmp_path / "a", module, prefix=prefix))
    dot = f"{prefix}." if prefix else ""
    assert archive.keys() == [f"{dot}{key}" for key in module.state_dict()]
    for key, value in module.state_dict().items():
        assert torch.equal(archive[f"{dot}{key}"].as_tensor(), value)


@pytest.mark.parametrize("suffix", [".irpa", ".safetensors"])
def test_tied_weight_is_stored_once_and_found_under_both_names(tmp_path: Path, suffix: str) -> None:
    module = nn.Sequential(nn.Linear(512, 512, bias=False), nn.Linear(512, 512, bias=False))
    module[1].weight = module[0].weight
    path = save_module_parameters(tmp_path / f"a{suffix}", module)
    assert path.stat().st_size < 1.01 * 512 * 512 * 4
    archive = ParameterArchive(path)
    assert torch.equal(archive["0.weight"].as_tensor(), archive["1.weight"].as_tensor())


@pytest.mark.parametrize(
    ("given", "written"),
    [("a", "a.irpa"), ("a.v2", "a.v2.irpa"), ("a.irpa", "a.irpa"), ("a.safetensors",) * 2],
)
def test_suffix_is_added_unless_it_is_known(tmp_path: Path, given: str, written: str) -> None:
    builder = ParameterArchiveBuilder()
    assert builder.save(tmp_path / given) == tmp_path / written
    assert (tmp_path / written).exists()


def test_name_that_is_taken_is_refused() -> None:
    builder = ParameterArchiveBuilder()
    builder.add_tensor("a", torch.zeros(1))
    with pytest.raises(ParameterError, match="has a parameter 'a' already"):
        builder.add_blob("a", b"x")


def test_tensors_are_saved_as_they_are_when_saved(tmp_path: Path) -> None:
    builder, tensor = ParameterArchiveBuilder(), torch.zeros(1)
    builder.add_tensor("a", tensor)
    tensor += 1
    assert ParameterArchive(builder.save(tmp_path / "a"))["a"].as_tensor().item() == 1


def test_index_of_a_builder_holds_what_was_added() -> None:
    builder = ParameterArchiveBuilder()
    builder.add_tensor("a", torch.tensor([5], dtype=torch.uint8))
    assert [(k, bytes(e.file_view)) for k, e in builder.index.items()] == [("a", b"\5")]
