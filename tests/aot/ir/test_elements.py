"""Elements of tensors as bytes, types and attributes."""

from __future__ import annotations

import pytest
import torch
from iree.compiler.ir import Context, Type

from pelton import aot
from pelton.aot.ir.elements import (
    check_tensor,
    dtype_row,
    elements_attribute,
    global_type,
    shape_of,
    storage_dtype,
    tensor_bytes,
)
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.errors import SourceLocation

CONTEXT = Context()


@pytest.mark.parametrize("name", [n for n in DTYPES if hasattr(torch, n)])
def test_each_element_type_has_its_row(name: str) -> None:
    assert dtype_row(getattr(torch, name), "x").name == name


@pytest.mark.parametrize("dtype", [torch.complex32, torch.quint8])
def test_other_element_types_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(aot.ExportError, match=rf"tensor w has element type {dtype}, which cannot"):
        dtype_row(dtype, "tensor w")


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, about each of these kinds
def test_tensors_of_other_layouts_are_refused() -> None:
    dense, place = torch.eye(2), SourceLocation("model.py", 7)
    check_tensor(dense, "w")
    with pytest.raises(
        aot.ExportError, match=r"w is a torch\.sparse_csr tensor; use .*model\.py:7"
    ):
        check_tensor(dense.to_sparse_csr(), "w", "use", place)
    with pytest.raises(aot.ExportError, match="w is quantized; pass its int_repr"):
        check_tensor(torch.quantize_per_tensor(dense, 0.1, 0, torch.qint8), "w")
    with pytest.raises(aot.ExportError, match=r"w has element type torch\.complex32"):
        check_tensor(torch.empty(2, dtype=torch.complex32, device="meta"), "w")


@pytest.mark.parametrize(
    "name, shape, text",
    [("float32", (2, None), "tensor<2x?xf32>"), ("bool", (), "tensor<i8>"),
     ("uint8", (0,), "tensor<0xi8>"), ("complex64", (1,), "tensor<1xcomplex<f32>>")],
)  # fmt: skip
def test_types_of_globals(name: str, shape: tuple[int | None, ...], text: str) -> None:
    assert str(global_type(DTYPES[name], shape, CONTEXT)) == text


def test_only_bools_are_stored_as_another_type() -> None:
    changed = [row.name for row in DTYPES.values() if storage_dtype(row) != row.mlir]
    assert changed == ["bool"]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6, dtype=torch.int16).reshape(2, 3),
        torch.arange(6, dtype=torch.int32).reshape(2, 3).T,
        torch.arange(8)[::2],
        torch.ones(3).expand(2, 3),
        torch.tensor(1.5),
        torch.zeros(0, 3),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]).conj(),
        torch.ones(2, requires_grad=True),
        torch.ones(2, dtype=torch.bfloat16),
    ],
    ids=lambda t: f"{t.dtype}{tuple(t.shape)}",
)
def test_bytes_are_row_major(tensor: torch.Tensor) -> None:
    data = bytes(tensor_bytes(tensor))
    assert len(data) == tensor.numel() * tensor.element_size()
    if tensor.numel():
        back = torch.frombuffer(bytearray(data), dtype=tensor.dtype).reshape(tensor.shape)
        assert torch.equal(back, tensor.detach().resolve_conj())


def test_contiguous_memory_is_not_copied() -> None:
    tensor = torch.zeros(4, dtype=torch.uint8)
    view = tensor_bytes(tensor)
    tensor[1] = 7
    assert view[1] == 7


def test_a_tensor_without_data_is_refused() -> None:
    with pytest.raises(aot.ExportError, match=r"shape \(2, 3\) has no data \(device meta\)"):
        tensor_bytes(torch.empty(2, 3, device="meta"))


def attribute(tensor: torch.Tensor) -> tuple[str, dict[str, bytes]]:
    resources: dict[str, bytes] = {}
    type_ = Type.parse(
        str(global_type(dtype_row(tensor.dtype, "x"), tuple(tensor.shape), CONTEXT)), CONTEXT
    )
    return str(elements_attribute(tensor, type_, CONTEXT, resources)), resources


def test_one_element_is_a_splat() -> None:
    assert attribute(torch.tensor([2.5])) == ("dense<2.500000e+00> : tensor<1xf32>", {})


def test_no_element_is_an_empty_literal() -> None:
    assert attribute(torch.zeros(0, 2)) == ("dense<> : tensor<0x2xf32>", {})


def test_several_elements_are_a_resource_of_a_copy() -> None:
    tensor = torch.tensor([1.0, 2.0])
    text, resources = attribute(tensor)
    ((name, data),) = resources.items()
    assert text == f"dense_resource<{name}> : tensor<2xf32>"
    assert data == bytes(tensor_bytes(tensor))
    tensor.zero_()
    assert data != bytes(tensor_bytes(tensor))


@pytest.mark.parametrize("size, literal", [(4096, True), (4097, False)])
def test_narrow_floats_are_literals_up_to_what_is_folded(size: int, literal: bool) -> None:
    text, resources = attribute(torch.arange(size).to(torch.bfloat16))
    assert text.startswith("dense<") is literal and (resources == {}) is literal


def test_shapes_are_plain_integers() -> None:
    assert shape_of(torch.zeros(2, 0)) == (2, 0)
    assert all(type(size) is int for size in shape_of(torch.zeros(2, 3)))
