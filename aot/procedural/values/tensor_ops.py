"""Tensor operations of a procedure: slices, updates, reshapes, fills, casts, loads and stores."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from iree.compiler.dialects import arith, flow
from iree.compiler.dialects import tensor as tensor_dialect
from iree.compiler.ir import (
    DenseElementsAttr,
    FlatSymbolRefAttr,
    IntegerAttr,
    Operation,
    RankedTensorType,
    Type,
    Value,
)

from ...ir.builder import TensorGlobal
from ...spec.sizes import is_static
from .arithmetic import KIND_OF_DTYPE, constant, convert, index_constant
from .scalars import IrScalar, Size, index_scalar, same_size, scalar_value
from .services import TraceServices
from .sizes import DYNAMIC
from .tensors import NO_ALIAS, IrImmediateTensor, IrTensor


@dataclass(frozen=True)
class DimSlice:
    """A range of positions in one dimension.

    Attributes:
        start: The first position.
        length: The number of positions.
        is_full: Whether the range is known to cover the dimension.
    """

    start: Size
    length: Size
    is_full: bool = False


def tensor_type(trace: TraceServices, shape: Sequence[Size], dtype: torch.dtype) -> Type:
    """Return the builtin tensor type of a shape.

    Args:
        trace: The procedure.
        shape: The sizes; traced ones are dynamic.
        dtype: The element type.
    """
    element = trace.module_builder.torch_dtype_to_iree_type(dtype)
    sizes = [size if is_static(size) else DYNAMIC for size in shape]
    with trace.context, trace.location():
        return RankedTensorType.get(sizes, element)


def index_values(trace: TraceServices, sizes: Sequence[Size]) -> list[Value]:
    """Return sizes or positions as values of type index; called within `trace.emitting()`."""
    return [
        index_constant(size) if is_static(size) else index_scalar(trace, size).ir_value
        for size in sizes
    ]


def dynamic_values(trace: TraceServices, sizes: Sequence[Size]) -> list[Value]:
    """Return the dynamic ones of sizes as values of type index, as `index_values` does."""
    return index_values(trace, [size for size in sizes if not is_static(size)])


def with_sizes(
    trace: TraceServices,
    value: Value,
    dtype: torch.dtype,
    shape: Sequence[Size],
    may_alias: frozenset[str] = NO_ALIAS,
) -> IrTensor:
    """Return a traced tensor whose dynamic sizes are known, so that none is read from it.

    Args:
        trace: The procedure.
        value: The tensor.
        dtype: The element type.
        shape: The sizes.
        may_alias: The globals whose contents it may be.
    """
    result = IrImmediateTensor(value, dtype)
    result.may_alias = may_alias
    result.set_dynamic_dim_values(dynamic_values(trace, shape))
    return result


def is_contiguous(slices: Sequence[DimSlice]) -> bool:
    """Return whether a slice is known to be one contiguous run of elements in memory.

    IREE's own slices and updates copy one run of elements: of any other slice they copy as many
    elements from its start, without an error.

    Example:
        >>> is_contiguous([DimSlice(2, 1), DimSlice(0, 4), DimSlice(0, 8, is_full=True)])
        True
        >>> is_contiguous([DimSlice(0, 8, is_full=True), DimSlice(0, 4)])
        False
    """
    rows = itertools.dropwhile(lambda s: type(s.length) is int and s.length == 1, slices)
    return all(dim_slice.is_full for dim_slice in list(rows)[1:])


def emit_slice(trace: TraceServices, source: IrTensor, slices: Sequence[DimSlice]) -> IrTensor:
    """Emit a slice of a tensor.

    Args:
        trace: The procedure.
        source: The tensor.
        slices: One range for each dimension, within its size.
    """
    shape = [dim_slice.length for dim_slice in slices]
    starts = [dim_slice.start for dim_slice in slices]
    with trace.emitting():
        type_ = tensor_type(trace, shape, source.dtype)
        if is_contiguous(slices):
            dims = source.dynamic_dim_values()
            first, lengths = index_values(trace, starts), index_values(trace, shape)
            dynamic = dynamic_values(trace, shape)
            op = flow.TensorSliceOp(type_, source.ir_value, dims, first, lengths, dynamic)
        else:
            op = tensor_dialect.ExtractSliceOp(
                type_, source.ir_value, *_offsets_and_sizes(trace, starts, shape)
            )
        return with_sizes(trace, op.result, source.dtype, shape, source.may_alias)


def emit_update(
    trace: TraceServices, target: IrTensor, update: IrTensor, slices: Sequence[DimSlice]
) -> IrTensor:
    """Emit a copy of a tensor with a slice replaced.

    Args:
        trace: The procedure.
        target: The tensor.
        update: The new elements, in the shape of the slice.
        slices: One range for each dimension of `target`, within its size.
    """
    starts = [dim_slice.start for dim_slice in slices]
    with trace.emitting():
        if is_contiguous(slices):
            op = flow.TensorUpdateOp(
                target.ir_value,
                target.dynamic_dim_values(),
                index_values(trace, starts),
                update.ir_value,
                update.dynamic_dim_values(),
            )
        else:
            op = tensor_dialect.InsertSliceOp(
                update.ir_value,
                target.ir_value,
                *_offsets_and_sizes(trace, starts, update.shape),
            )
        return with_sizes(trace, op.result, target.dtype, target.shape, target.may_alias)


def _offsets_and_sizes(
    trace: TraceServices, starts: Sequence[Size], lengths: Sequence[Size]
) -> list[Any]:
    """Return the operands of a slice of the tensor dialect: dynamic values, then static ones."""
    dynamic = [dynamic_values(trace, sizes) for sizes in (starts, lengths)]
    static = [
        [size if is_static(size) else DYNAMIC for size in sizes] for sizes in (starts, lengths)
    ]
    return [*dynamic, [], *static, [1] * len(starts)]


def emit_reshape(trace: TraceServices, source: IrTensor, shape: Sequence[Size]) -> IrTensor:
    """Emit a reshape.

    Args:
        trace: The procedure.
        source: The tensor.
        shape: The new sizes, of the same number of elements.
    """
    with trace.emitting():
        type_ = tensor_type(trace, shape, source.dtype)
        dims = dynamic_values(trace, shape)
        op = flow.TensorReshapeOp(type_, source.ir_value, source.dynamic_dim_values(), dims)
        return with_sizes(trace, op.result, source.dtype, shape, source.may_alias)


def emit_empty(trace: TraceServices, shape: Sequence[Size], dtype: torch.dtype) -> IrTensor:
    """Emit a tensor of undefined values.

    Args:
        trace: The procedure.
        shape: The sizes.
        dtype: The element type.
    """
    with trace.emitting():
        dims = dynamic_values(trace, shape)
        op = flow.TensorEmptyOp(tensor_type(trace, shape, dtype), dims)
        return with_sizes(trace, op.result, dtype, shape)


def emit_splat(
    trace: TraceServices, shape: Sequence[Size], value: Value, dtype: torch.dtype
) -> IrTensor:
    """Emit a tensor filled with one value.

    Args:
        trace: The procedure.
        shape: The sizes.
        value: The value, of the element type.
        dtype: The element type.
    """
    with trace.emitting():
        dims = dynamic_values(trace, shape)
        op = flow.TensorSplatOp(tensor_type(trace, shape, dtype), value, dims)
        return with_sizes(trace, op.result, dtype, shape)


def emit_fill(
    trace: TraceServices, shape: Sequence[Size], value: Any, dtype: torch.dtype
) -> IrTensor:
    """Emit a tensor filled with a number, which is converted as torch does.

    Args:
        trace: The procedure.
        shape: The sizes.
        value: A Python number or a traced scalar.
        dtype: The element type; one without scalars is filled in a wider type and converted.

    Raises:
        ProcedureTraceError: `value` is no number.
    """
    kind = KIND_OF_DTYPE.get(dtype)
    if kind is None:
        wide = torch.float32 if dtype.is_floating_point else torch.int64
        filled = emit_fill(trace, shape, value, wide)
        narrow: IrTensor = trace.call_torch(torch.Tensor.to, (filled, dtype))
        return narrow
    with trace.emitting():
        element = convert(scalar_value(trace, value, None), kind)
        return emit_splat(trace, shape, element, dtype)


def emit_rank0(trace: TraceServices, scalar: IrScalar) -> IrTensor:
    """Emit the rank-0 tensor of a scalar."""
    with trace.emitting():
        value = scalar.to(scalar.dtype).ir_value
        type_ = tensor_type(trace, (), scalar.dtype)
        return IrImmediateTensor(tensor_dialect.from_elements(type_, [value]), scalar.dtype)


def emit_cast(trace: TraceServices, source: IrTensor, shape: Sequence[int]) -> Value:
    """Emit a cast that makes some sizes of a tensor's type static or dynamic.

    Args:
        trace: The procedure.
        source: The tensor.
        shape: The sizes of the new type, with `DYNAMIC` for dynamic ones; a static size is checked.

    Raises:
        ProcedureTraceError: A size is known to differ.
    """
    if list(shape) == source.type_shape:
        return source.ir_value
    for axis, size in enumerate(shape):
        if size != DYNAMIC:
            require_equal(trace, source.size(axis), size, f"dimension {axis} of {source}")
    with trace.emitting():
        element = trace.module_builder.torch_dtype_to_iree_type(source.dtype)
        type_ = RankedTensorType.get(list(shape), element)
        return tensor_dialect.cast(type_, source.ir_value)


def require_equal(trace: TraceServices, left: Size, right: Size, what: str) -> None:
    """Emit a check that two sizes are equal, unless they are known to be.

    Args:
        trace: The procedure.
        left: The size that is checked.
        right: The size that it must be equal to.
        what: The name of `left` for messages.

    Raises:
        ProcedureTraceError: The sizes are known to differ.
    """
    if same_size(left, right):
        return
    if is_static(left) and is_static(right):
        trace.fail(f"{what} is {left}, but must be {right}")
    expected = f"must be {right}" if is_static(right) else "differs from what it must equal"
    trace.require(left == right, f"{what} {expected}")


def emit_copy(trace: TraceServices, source: IrTensor) -> IrTensor:
    """Emit a copy of a tensor that IREE does not elide.

    IREE (3.13) elides plain copies between globals, after which an update in place of one changes
    the other. A select between the tensor and another, by a bool that IREE cannot fold, is a copy.
    """
    with trace.emitting():
        dims = source.dynamic_dim_values()
        true = constant(True, "i1")
        opaque = Operation.create(
            "util.optimization_barrier", results=[true.type], operands=[true]
        ).result
        mask = flow.TensorSplatOp(tensor_type(trace, source.shape, torch.bool), opaque, dims)
        other = flow.TensorEmptyOp(source.ir_type, dims)
        copied = arith.select(mask.result, source.ir_value, other.result)
        return with_sizes(trace, copied, source.dtype, source.shape)


def emit_global_load(trace: TraceServices, source: TensorGlobal) -> Value:
    """Emit the load of a tensor global, as a tensor of its element type."""
    reference = {"global": FlatSymbolRefAttr.get(source.symbol, trace.context)}
    with trace.emitting():
        loaded = Operation.create("util.global.load", results=[source.type], attributes=reference)
        if source.dtype.name != "bool":
            return loaded.result
        return arith.cmpi(1, loaded.result, _zeros(source.type))


def emit_global_store(trace: TraceServices, target: TensorGlobal, value: Value) -> None:
    """Emit the store of a tensor to a global.

    Args:
        trace: The procedure.
        target: The global.
        value: A tensor of the global's shape and element type.
    """
    reference = {"global": FlatSymbolRefAttr.get(target.symbol, trace.context)}
    with trace.emitting():
        stored = arith.extui(target.type, value) if target.dtype.name == "bool" else value
        Operation.create("util.global.store", operands=[stored], attributes=reference)


def _zeros(type_: Type) -> Value:
    element = IntegerAttr.get(type_.element_type, 0)  # type: ignore[attr-defined]
    return arith.constant(type_, DenseElementsAttr.get_splat(type_, element))
