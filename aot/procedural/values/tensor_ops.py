"""The tensor operations that procedures are made of, with static and dynamic sizes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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

from ...ir.assertions import emit_requirement
from ...ir.builder import TensorGlobal
from ...spec.sizes import is_static
from .arithmetic import constant, index_constant
from .indexing import Span, same_size
from .scalars import IrScalar
from .sizes import DYNAMIC
from .tensors import FRESH, IrImmediateTensor, IrTensor

if TYPE_CHECKING:
    from ..module.trace import IrTrace
    from .tensors import Size


def tensor_type(trace: IrTrace, shape: Sequence[Size], dtype: torch.dtype) -> Type:
    """Return the builtin tensor type of a shape; traced sizes are dynamic."""
    element = trace.module_builder.torch_dtype_to_iree_type(dtype)
    sizes = [size if is_static(size) else DYNAMIC for size in shape]
    with trace.context, trace.location():
        return RankedTensorType.get(sizes, element)


def values_of(trace: IrTrace, sizes: Sequence[Size]) -> list[Value]:
    """Return sizes or positions as values of type index."""
    return [
        index_constant(size) if is_static(size) else trace.index(size).ir_value for size in sizes
    ]


def dynamic_values(trace: IrTrace, sizes: Sequence[Size]) -> list[Value]:
    """Return the traced ones of sizes, as values of type index."""
    return values_of(trace, [size for size in sizes if not is_static(size)])


def sized(
    trace: IrTrace,
    value: Value,
    dtype: torch.dtype,
    shape: Sequence[Size],
    origins: frozenset[str] = FRESH,
) -> IrTensor:
    """Return a tensor whose dynamic sizes are known."""
    result = IrImmediateTensor(value, dtype)
    result.origins = origins
    result.set_dynamic_dim_values(dynamic_values(trace, shape))
    return result


def is_contiguous(spans: Sequence[Span]) -> bool:
    """Return whether a box is known to be one run of elements in memory.

    IREE's own slices and updates are copies of one run; of a box that is none they take, without
    a word, as many elements from its start.

    Example:
        >>> is_contiguous([Span(2, 1), Span(0, 4), Span(0, 8, whole=True)])
        True
        >>> is_contiguous([Span(0, 8, whole=True), Span(0, 4)])
        False
    """
    rows = itertools.dropwhile(lambda span: type(span.length) is int and span.length == 1, spans)
    return all(span.whole for span in list(rows)[1:])


def emit_slice(trace: IrTrace, source: IrTensor, spans: Sequence[Span]) -> IrTensor:
    """Emit the box of `source` that spans select; they are within range."""
    shape = [span.length for span in spans]
    starts = [span.start for span in spans]
    with trace.emitting():
        type_ = tensor_type(trace, shape, source.dtype)
        if is_contiguous(spans):
            dims = source.dynamic_dim_values()
            first, lengths = values_of(trace, starts), values_of(trace, shape)
            dynamic = dynamic_values(trace, shape)
            op = flow.TensorSliceOp(type_, source.ir_value, dims, first, lengths, dynamic)
        else:
            op = tensor_dialect.ExtractSliceOp(
                type_, source.ir_value, *_offsets_and_sizes(trace, starts, shape)
            )
        return sized(trace, op.result, source.dtype, shape, source.origins)


def emit_update(
    trace: IrTrace, target: IrTensor, update: IrTensor, spans: Sequence[Span]
) -> IrTensor:
    """Emit `target` with `update` written to the box that spans select; it is within range."""
    starts = [span.start for span in spans]
    with trace.emitting():
        if is_contiguous(spans):
            op = flow.TensorUpdateOp(
                target.ir_value,
                target.dynamic_dim_values(),
                values_of(trace, starts),
                update.ir_value,
                update.dynamic_dim_values(),
            )
        else:
            op = tensor_dialect.InsertSliceOp(
                update.ir_value,
                target.ir_value,
                *_offsets_and_sizes(trace, starts, update.shape),
            )
        return sized(trace, op.result, target.dtype, target.shape, target.origins)


def _offsets_and_sizes(
    trace: IrTrace, starts: Sequence[Size], lengths: Sequence[Size]
) -> list[Any]:
    """Return the operands of a slice of the tensor dialect: dynamic values, then static ones."""
    dynamic = [dynamic_values(trace, sizes) for sizes in (starts, lengths)]
    static = [
        [size if is_static(size) else DYNAMIC for size in sizes] for sizes in (starts, lengths)
    ]
    return [*dynamic, [], *static, [1] * len(starts)]


def emit_reshape(trace: IrTrace, source: IrTensor, shape: Sequence[Size]) -> IrTensor:
    """Emit `source` in another shape of as many elements."""
    with trace.emitting():
        type_ = tensor_type(trace, shape, source.dtype)
        dims = dynamic_values(trace, shape)
        op = flow.TensorReshapeOp(type_, source.ir_value, source.dynamic_dim_values(), dims)
        return sized(trace, op.result, source.dtype, shape, source.origins)


def emit_empty(trace: IrTrace, shape: Sequence[Size], dtype: torch.dtype) -> IrTensor:
    """Emit a tensor of undefined values."""
    with trace.emitting():
        dims = dynamic_values(trace, shape)
        op = flow.TensorEmptyOp(tensor_type(trace, shape, dtype), dims)
        return sized(trace, op.result, dtype, shape)


def emit_splat(trace: IrTrace, shape: Sequence[Size], value: Value, dtype: torch.dtype) -> IrTensor:
    """Emit a tensor filled with one value of its element type."""
    with trace.emitting():
        dims = dynamic_values(trace, shape)
        op = flow.TensorSplatOp(tensor_type(trace, shape, dtype), value, dims)
        return sized(trace, op.result, dtype, shape)


def emit_single(trace: IrTrace, scalar: IrScalar) -> IrTensor:
    """Emit the 0-d tensor of a scalar."""
    with trace.emitting():
        value = scalar.to(scalar.dtype).ir_value
        type_ = tensor_type(trace, (), scalar.dtype)
        made = tensor_dialect.from_elements(type_, [value])
        return IrImmediateTensor(made, scalar.dtype)


def emit_cast(trace: IrTrace, source: IrTensor, shape: Sequence[int]) -> Value:
    """Emit `source` with some sizes of its type made static or dynamic; they must agree.

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


def require_equal(trace: IrTrace, left: Size, right: Size, what: str) -> None:
    """Emit a check that two sizes are equal, unless that is known.

    Raises:
        ProcedureTraceError: They are known to differ.
    """
    if same_size(left, right):
        return
    if is_static(left) and is_static(right):
        trace.fail(f"{what} is {left}, but must be {right}")
    expected = f"must be {right}" if is_static(right) else "differs from what it must equal"
    trace.require(left == right, f"{what} {expected}")


def emit_check(trace: IrTrace, condition: Value, message: str) -> None:
    """Emit a check that stops the program with a message unless a bool is true."""
    with trace.emitting():
        emit_requirement(condition, message)


def emit_copy(trace: IrTrace, source: IrTensor) -> IrTensor:
    """Emit a copy of a tensor that IREE does not see through.

    IREE (3.13) elides plain copies between globals, after which an update in place of one changes
    the other. So this chooses between the tensor and another by a bool that it cannot know.
    """
    with trace.emitting():
        dims = source.dynamic_dim_values()
        true = constant(True, "i1")
        hidden = Operation.create(
            "util.optimization_barrier", results=[true.type], operands=[true]
        ).result
        choice = flow.TensorSplatOp(tensor_type(trace, source.shape, torch.bool), hidden, dims)
        other = flow.TensorEmptyOp(source.ir_type, dims)
        copied = arith.select(choice.result, source.ir_value, other.result)
        return sized(trace, copied, source.dtype, source.shape)


def emit_global_load(trace: IrTrace, source: TensorGlobal) -> Value:
    """Emit the load of a tensor global, as a tensor of its element type."""
    reference = {"global": FlatSymbolRefAttr.get(source.symbol, trace.context)}
    with trace.emitting():
        loaded = Operation.create("util.global.load", results=[source.type], attributes=reference)
        if source.dtype.name != "bool":
            return loaded.result
        return arith.cmpi(1, loaded.result, _zeros(source.type))


def emit_global_store(trace: IrTrace, target: TensorGlobal, value: Value) -> None:
    """Emit the store of a tensor to a global of its type."""
    reference = {"global": FlatSymbolRefAttr.get(target.symbol, trace.context)}
    with trace.emitting():
        stored = arith.extui(target.type, value) if target.dtype.name == "bool" else value
        Operation.create("util.global.store", operands=[stored], attributes=reference)


def _zeros(type_: Type) -> Value:
    element = IntegerAttr.get(type_.element_type, 0)  # type: ignore[attr-defined]
    return arith.constant(type_, DenseElementsAttr.get_splat(type_, element))
