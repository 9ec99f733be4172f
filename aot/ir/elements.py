"""Elements of torch tensors as MLIR attributes and as buffers."""

from __future__ import annotations

from typing import Any

import torch
from iree.compiler.ir import (
    Attribute,
    Context,
    DenseResourceElementsAttr,
    Location,
    RankedTensorType,
    Type,
)

from pelton.runtime.call.dtypes import DTYPES, DType, dtype_of

from ..spec.errors import ExportError, SourceLocation
from ..spec.meta_tensors import has_data
from .torch_types import TensorType


def dtype_row(dtype: torch.dtype, where: str, location: SourceLocation | None = None) -> DType:
    """Return the row of a torch element type in the dtype table.

    Args:
        dtype: The element type.
        where: What has it, for the message.
        location: The user's line.

    Raises:
        ExportError: It is not in the table.
    """
    found = dtype_of(dtype)
    if found is None:
        raise ExportError(
            f"{where} has element type {dtype}, which cannot be exported; "
            f"known: {', '.join(DTYPES)}",
            location=location,
        )
    return found


def check_tensor(
    tensor: torch.Tensor, where: str, verb: str = "pass", location: SourceLocation | None = None
) -> None:
    """Refuse a tensor of a layout or element type that compiled programs do not have.

    Args:
        tensor: The tensor.
        where: What it is, for the message.
        verb: What the user does with it.
        location: The user's line that does so.

    Raises:
        ExportError: It is of such a layout or type.
    """
    if tensor.layout is not torch.strided:
        raise ExportError(
            f"{where} is a {tensor.layout} tensor; {verb} a dense one (to_dense())",
            location=location,
        )
    if tensor.is_quantized:
        raise ExportError(
            f"{where} is quantized; {verb} its int_repr() and scale instead", location=location
        )
    dtype_row(tensor.dtype, where, location)


def storage_dtype(dtype: DType) -> str:
    """Return the MLIR element type that globals hold for `dtype`: a byte for a bool.

    IREE packs and cannot initialise `i1` tensors; a byte that is 0 or 1 is exact.
    """
    return "i8" if dtype.name == "bool" else dtype.mlir


def global_type(dtype: DType, shape: tuple[int | None, ...], context: Context) -> Type:
    """Return the builtin tensor type of a global.

    Args:
        dtype: The element type.
        shape: The sizes; None: dynamic.
        context: The module's context.
    """
    return Type.parse(TensorType(shape, storage_dtype(dtype)).builtin(), context)


def tensor_bytes(tensor: torch.Tensor) -> memoryview:
    """Return the elements of a tensor as bytes, row-major; a view where its memory is so already.

    Raises:
        ExportError: The tensor has no data (it is on the meta device or fake).
    """
    if not has_data(tensor):
        raise ExportError(
            f"a tensor of shape {tuple(tensor.shape)} has no data (device {tensor.device}); "
            "export it with external_parameters, or give it values"
        )
    dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    flat = dense.as_strided((dense.numel(),), (1,))  # of one element, it may have any strides
    data: Any = flat.view(torch.uint8).numpy()
    return memoryview(data)


_UNFOLDABLE = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
_FOLDED = 4096  # more than the elements of any constant that IREE folds


def elements_attribute(
    tensor: torch.Tensor, type_: Type, context: Context, resources: dict[str, bytes]
) -> Attribute:
    """Return a tensor's values as an elements attribute of type `type_`.

    The values are copied, so later changes to the tensor do not change the module.

    Args:
        tensor: The tensor.
        type_: The builtin tensor type.
        context: The module's context.
        resources: Gets the copy, which the attribute shares, under its name in the module.
    """
    if tensor.numel() == 0:
        return Attribute.parse(f"dense<> : {type_}", context)
    data = bytes(tensor_bytes(tensor))
    # Resources cannot be splats, which compilers fold best; and where IREE folds a small resource
    # of bfloat16 or float8 into code, it gets its type wrong.
    if tensor.numel() == 1 or (tensor.dtype in _UNFOLDABLE and tensor.numel() <= _FOLDED):
        return Attribute.parse(f'dense<"0x{data.hex().upper()}"> : {type_}', context)
    shape = "_".join(map(str, tensor.shape))
    # No more than the elements need: readers of bytecode do not align what they read.
    alignment = min(tensor.element_size(), 8)
    with context, Location.unknown():
        attribute = DenseResourceElementsAttr.get_from_buffer(
            data,
            f"torch_tensor_{shape}_{tensor.dtype}",
            RankedTensorType(type_),
            alignment=alignment,
        )
    final_name = str(attribute).removeprefix("dense_resource<").partition(">")[0]
    resources[final_name] = data
    return attribute


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a tensor as plain integers."""
    return tuple(int(size) for size in value.shape)
