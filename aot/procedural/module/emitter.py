"""Emitters of a procedure: tensor operations by name (`aot.IREE.tensor_…`), and `aot.print`."""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from iree.compiler.dialects import flow
from iree.compiler.ir import Value

from ...spec.sizes import is_static
from ..values import tensor_ops
from ..values.conversions import index_of, tensor_of
from ..values.current import current_ir_trace
from ..values.scalars import IrImmediateScalar, IrScalar, Size, same_size
from ..values.services import TraceServices
from ..values.tensor_ops import DimSlice
from ..values.tensors import IrTensor

Number: TypeAlias = int | IrScalar | Value
"""A size, position or element: a Python number, a traced scalar, or a value of the module."""


class IREEEmitter:
    """Emitters of single IREE operations on traced tensors; the instance is `aot.IREE`.

    Sizes and positions are Python integers or traced scalars, so all shapes may be dynamic. A
    range is checked while tracing where it is static, else when the program runs.

    Example:
        >>> from pelton import aot
        >>> class Grow(aot.CompiledModule):
        ...     def ones(self, n=aot.AbstractIndex):
        ...         return aot.IREE.tensor_splat(n, 4, value=1.0, dtype=torch.float32)
        >>> print(aot.export(Grow).signatures["ones"])
        ones(n: int) -> (float32[?, 4])
    """

    def tensor_dim(
        self, source: IrTensor, index: int, *, dtype: torch.dtype | None = None
    ) -> IrScalar:
        """Return a size of a tensor as a traced scalar.

        Args:
            source: The tensor.
            index: The dimension, from 0.
            dtype: The element type to convert it to; None: index.

        Raises:
            ProcedureTraceError: There is no such dimension.
        """
        trace = source.trace
        if type(index) is not int or not 0 <= index < source.rank:
            trace.fail(f"{source!r} has no dimension {index!r}; it has {source.rank}")
        size = IrImmediateScalar(source.get_dim_value(index))
        return size if dtype is None else size.to(dtype)

    def tensor_empty(self, *dims: Number, dtype: torch.dtype = torch.float32) -> IrTensor:
        """Return a tensor of undefined values.

        Args:
            dims: The sizes.
            dtype: The element type.
        """
        trace = current_ir_trace()
        return tensor_ops.emit_empty(trace, _sizes(trace, dims), dtype)

    def tensor_splat(
        self, *dims: Number, value: float | IrScalar | Value, dtype: torch.dtype
    ) -> IrTensor:
        """Return a tensor filled with one value.

        Args:
            dims: The sizes.
            value: The number, converted to the element type as torch does.
            dtype: The element type.

        Raises:
            ProcedureTraceError: `value` is no number.
        """
        trace = current_ir_trace()
        return tensor_ops.emit_fill(trace, _sizes(trace, dims), _traced(value), dtype)

    def tensor_reshape(self, source: IrTensor, *result_dims: Number) -> IrTensor:
        """Return a tensor in another shape of as many elements.

        Args:
            source: The tensor.
            result_dims: The new sizes; one may be -1 and is inferred from the others.

        Raises:
            ProcedureTraceError: The number of elements is known to differ, or -1 is ambiguous.
        """
        trace = source.trace
        shape = _inferred(trace, source, _sizes(trace, result_dims))
        before, after = _product(source.shape), _product(shape)
        if not same_size(before, after):
            sizes = ", ".join("?" if isinstance(size, IrScalar) else str(size) for size in shape)
            trace.require(
                before == after, f"{source} cannot be reshaped to [{sizes}]: other element count"
            )
        return tensor_ops.emit_reshape(trace, source, shape)

    def tensor_slice(self, source: IrTensor, *indices: Number | tuple[Number, Number]) -> IrTensor:
        """Return a slice of a tensor, of the same rank.

        Args:
            source: The tensor.
            indices: For each dimension a start, with the length 1, or `(start, length)`.

        Raises:
            ProcedureTraceError: There are more or fewer indices than dimensions, or the slice is
                known to be out of range.
        """
        trace = source.trace
        if len(indices) != source.rank:
            trace.fail(
                f"tensor_slice of {source!r} takes {source.rank} indices, got {len(indices)}"
            )
        slices = []
        for axis, entry in enumerate(indices):
            pair = entry if isinstance(entry, (tuple, list)) else (entry, 1)
            if len(pair) != 2:
                trace.fail(f"index {axis} must be a start or (start, length), got {entry!r}")
            start, length = _sizes(trace, pair)
            slices.append(_checked_slice(trace, source, axis, start, length))
        return tensor_ops.emit_slice(trace, source, slices)

    def tensor_update(self, target: IrTensor, update: IrTensor, *start_indices: Number) -> IrTensor:
        """Return a copy of a tensor with a slice replaced.

        Args:
            target: The tensor.
            update: The new elements: a tensor of the same element type and rank.
            start_indices: The first position in each dimension.

        Raises:
            ProcedureTraceError: The types differ, or the slice is known to be out of range.
        """
        trace = target.trace
        update = tensor_of(trace, update, "the update")
        if update.dtype != target.dtype or update.rank != target.rank:
            trace.fail(
                f"tensor_update of {target!r} takes {target.rank} dimensions of the same element "
                f"type, got {update!r}"
            )
        if len(start_indices) != target.rank:
            trace.fail(
                f"tensor_update of {target!r} takes {target.rank} start indices, "
                f"got {len(start_indices)}"
            )
        starts = _sizes(trace, start_indices)
        slices = [
            _checked_slice(trace, target, axis, start, update.size(axis))
            for axis, start in enumerate(starts)
        ]
        return tensor_ops.emit_update(trace, target, update, slices)

    def tensor_trace(self, key: str, *ts: IrTensor | IrScalar) -> None:
        """Emit a print of tensors to stderr, under the title `=== key ===`.

        Args:
            key: The title.
            ts: Traced tensors, and scalars, which are printed as tensors.

        Raises:
            ProcedureTraceError: The title is no text, or a value is no tensor.
        """
        trace = current_ir_trace()
        if not isinstance(key, str):
            trace.fail(f"tensor_trace takes a title as text first, got {key!r}")
        tensors = [tensor_of(trace, _traced(value), "a traced value") for value in ts]
        with trace.emitting():
            values, sizes = [], []
            for tensor in tensors:
                values.append(tensor.ir_value)
                sizes.extend(tensor.dynamic_dim_values())
            flow.TensorTraceOp(key, values, sizes)


IREE = IREEEmitter()
"""The emitter that procedures use."""


def print(*values: Any) -> None:
    """Print values to stderr when the program runs; outside of procedures print them to stdout.

    Args:
        values: Traced tensors and scalars; text and other values become the title.

    Example:
        >>> from pelton import aot
        >>> class Noisy(aot.CompiledModule):
        ...     def double(self, x=aot.AbstractTensor(2)):
        ...         aot.print("doubling", x)
        ...         return x + x
        >>> "flow.tensor.trace" in str(aot.export(Noisy).mlir_module)
        True
    """
    traced = [value for value in values if isinstance(value, (IrTensor, IrScalar))]
    title = " ".join(str(value) for value in values if not isinstance(value, (IrTensor, IrScalar)))
    if not traced:
        builtins.print(*values)
        return
    IREE.tensor_trace(title or "print", *traced)


def _traced(value: Any) -> Any:
    """Return a value of the module as a traced scalar, and other values unchanged."""
    return IrImmediateScalar(value) if isinstance(value, Value) else value


def _sizes(trace: TraceServices, dims: Sequence[Any]) -> list[Size]:
    """Return sizes as Python integers and traced scalars of type index."""
    sizes: list[Size] = []
    for dim in dims:
        if type(dim) is int:
            sizes.append(dim)
        elif isinstance(dim, (IrScalar, IrTensor, Value)):
            sizes.append(index_of(trace, _traced(dim)))
        else:
            trace.fail(f"a size or position is an integer, got {dim!r}")
    return sizes


def _product(shape: Sequence[Size]) -> Size:
    static = functools.reduce(operator.mul, (size for size in shape if is_static(size)), 1)
    product: Size = functools.reduce(
        operator.mul, (size for size in shape if isinstance(size, IrScalar)), static
    )
    return product


def _inferred(trace: TraceServices, source: IrTensor, shape: list[Size]) -> list[Size]:
    """Return a shape with the inferred size in place of -1."""
    unknown = [axis for axis, size in enumerate(shape) if is_static(size) and size == -1]
    if any(is_static(size) and size < -1 for size in shape) or len(unknown) > 1:
        trace.fail("a shape has sizes of at least 0, and -1 at most once")
    if unknown:
        known = _product([size for axis, size in enumerate(shape) if axis not in unknown])
        if is_static(known) and known == 0:
            trace.fail("-1 is not determined beside a size of 0")
        shape[unknown[0]] = _product(source.shape) // known
    return shape


def _checked_slice(
    trace: TraceServices, tensor: IrTensor, axis: int, start: Size, length: Size
) -> DimSlice:
    """Return a range of positions in a dimension, after emitting the checks of its bounds."""
    size = tensor.size(axis)
    end = start + length
    if is_static(start) and start == 0 and same_size(length, size):
        return DimSlice(start, length, is_full=True)
    if all(is_static(number) for number in (start, length, size)):
        if not 0 <= start <= end <= size:  # type: ignore[operator]
            trace.fail(
                f"[{start}, {end}) is out of range for dimension {axis} of {tensor!r}, "
                f"which has {size}"
            )
        return DimSlice(start, length)
    where = f"dimension {axis} of {tensor}"
    if not (is_static(start) and start >= 0):
        trace.require(start >= 0, f"a position before the start of {where}")
    if not (is_static(length) and length >= 0):
        trace.require(length >= 0, f"a negative length in {where}")
    trace.require(end <= size, f"a position beyond the end of {where}")
    return DimSlice(start, length)
