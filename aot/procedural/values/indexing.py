"""Indexing of traced tensors: reads and writes at static and dynamic positions.

Integers, slices of step 1, `None` and `...` select one contiguous range per dimension and become a
slice or an update. Of other indices (tensors, lists, masks, steps) torch's own indexing is traced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ...spec.sizes import is_static
from .arithmetic import is_number
from .conversions import index_of, tensor_of
from .scalars import IrScalar, Size, dim_value_or_none, index_scalar, same_size, select
from .services import TraceServices
from .tensor_ops import DimSlice, emit_fill, emit_reshape, emit_slice, emit_update
from .tensors import IrImmediateTensor, IrTensor


@dataclass(frozen=True)
class IndexPlan:
    """The operations of an index: a slice, then a reshape or torch's own indexing.

    Attributes:
        slices: The slice of the tensor, one range for each dimension.
        shape: The shape of the result, where it is a reshape of the slice: integers remove their
            dimension and `None` adds one. None where torch has to index the slice.
        torch_index: The index of the slice for torch.
    """

    slices: tuple[DimSlice, ...]
    shape: tuple[Size, ...] | None
    torch_index: tuple[Any, ...] = ()

    @property
    def is_full(self) -> bool:
        """Whether the slice covers the tensor."""
        return all(dim_slice.is_full for dim_slice in self.slices)

    @property
    def is_slice(self) -> bool:
        """Whether the result is the slice itself, without a reshape."""
        return self.shape is not None and (
            len(self.torch_index) == len(self.slices) == len(self.shape)
        )


def read(tensor: IrTensor, index: Any) -> IrTensor:
    """Return the part of a tensor at an index; assigning to it writes to the tensor.

    Raises:
        ProcedureTraceError: The index does not fit the tensor.
    """
    trace = tensor.trace
    plan = plan_index(tensor, index)
    sliced = tensor if plan.is_full else emit_slice(trace, tensor, plan.slices)
    if plan.shape is None:
        part = trace.call_torch(_getitem, (sliced, plan.torch_index))
    elif plan.is_slice:
        part = sliced
    else:
        part = emit_reshape(trace, sliced, plan.shape)
    return _part_of(part, tensor, index)


def _part_of(part: IrTensor, base: IrTensor, index: Any) -> IrTensor:
    """Return a part of a tensor that writes through to it."""
    result = IrImmediateTensor(part.ir_value, part.dtype, (base, index))
    result.set_dynamic_dim_values(part.dynamic_dim_values())
    result.may_alias = part.may_alias
    return result


def write(tensor: IrTensor, index: Any, value: Any) -> IrTensor:
    """Return a copy of a tensor with the part at an index replaced.

    Args:
        tensor: The tensor; it does not change.
        index: The part to replace.
        value: A tensor or number; it is converted and broadcast as torch does.

    Raises:
        ProcedureTraceError: The index does not fit the tensor, or the value does not fit the part.
    """
    trace = tensor.trace
    plan = plan_index(tensor, index)
    if plan.shape is None:
        sliced = tensor if plan.is_full else emit_slice(trace, tensor, plan.slices)
        update = trace.call_torch(_setitem, (sliced, plan.torch_index, value))
    else:
        update = _update_value(trace, tensor, plan, value)
    return update if plan.is_full else emit_update(trace, tensor, update, plan.slices)


def _update_value(trace: TraceServices, tensor: IrTensor, plan: IndexPlan, value: Any) -> IrTensor:
    """Return `value` in the shape of the slice, converted to the tensor's element type."""
    lengths = tuple(dim_slice.length for dim_slice in plan.slices)
    if is_number(value) or isinstance(value, IrScalar):
        return emit_fill(trace, lengths, value, tensor.dtype)
    given = tensor_of(trace, value, f"the value assigned to a part of {tensor!r}")
    assert plan.shape is not None
    if given.dtype != tensor.dtype or not _same_shape(given.shape, plan.shape):
        if all(is_static(size) for size in plan.shape):
            given = trace.call_torch(_fit, (given, tensor.dtype, plan.shape))
        else:
            sliced = emit_slice(trace, tensor, plan.slices)
            part = sliced if plan.is_slice else emit_reshape(trace, sliced, plan.shape)
            given = trace.call_torch(_fit_like, (given, part))
    return given if plan.is_slice else emit_reshape(trace, given, lengths)


def _same_shape(left: tuple[Size, ...], right: tuple[Size, ...]) -> bool:
    return len(left) == len(right) and all(
        same_size(a, b) for a, b in zip(left, right, strict=True)
    )


def _getitem(tensor: torch.Tensor, index: tuple[Any, ...]) -> torch.Tensor:
    return tensor[index]


def _setitem(tensor: torch.Tensor, index: tuple[Any, ...], value: Any) -> torch.Tensor:
    changed = tensor.clone()
    changed[index] = value
    return changed


def _fit(tensor: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    extra = tensor.dim() - len(shape)  # as torch: leading dimensions of size 1 may be dropped
    if extra > 0 and all(size == 1 for size in tensor.shape[:extra]):
        tensor = tensor.reshape(tensor.shape[extra:])
    return tensor.to(dtype).expand(shape)


def _fit_like(tensor: torch.Tensor, model: torch.Tensor) -> torch.Tensor:
    return tensor.to(model.dtype).expand(model.shape)


def plan_index(tensor: IrTensor, index: Any) -> IndexPlan:
    """Return the operations of an index, and emit the checks of its dynamic positions.

    Raises:
        ProcedureTraceError: The index has too many entries, or one is out of range.
    """
    trace = tensor.trace
    entries = _expand(tensor, index if isinstance(index, tuple) else (index,))
    slices: list[DimSlice] = []
    shape: list[Size] = []
    torch_index: list[Any] = []
    is_reshape = True
    for entry in entries:
        axis = len(slices)
        if entry is None:
            shape.append(1)
            torch_index.append(None)
        elif _is_position(entry):
            slices.append(_position(trace, tensor, axis, entry))
            torch_index.append(0)
        elif isinstance(entry, slice) and _is_unit_step(entry.step):
            dim_slice = _range(trace, tensor, axis, entry)
            slices.append(dim_slice)
            shape.append(dim_slice.length)
            torch_index.append(slice(None))
        else:
            is_reshape = False
            slices.extend(_full(tensor, axis + offset) for offset in range(_axes_of(entry)))
            torch_index.append(_static_step(trace, entry))
    return IndexPlan(tuple(slices), tuple(shape) if is_reshape else None, tuple(torch_index))


def _expand(tensor: IrTensor, entries: tuple[Any, ...]) -> list[Any]:
    """Return the entries with full slices for `...` and for trailing dimensions."""
    used = sum(_axes_of(entry) for entry in entries if entry is not None and entry is not ...)
    if used > tensor.rank or sum(entry is ... for entry in entries) > 1:
        tensor.trace.fail(f"an index of {used} entries does not fit {tensor!r}")
    fill = [slice(None)] * (tensor.rank - used)
    if not any(entry is ... for entry in entries):
        return [*entries, *fill]
    place = next(number for number, entry in enumerate(entries) if entry is ...)
    return [*entries[:place], *fill, *entries[place + 1 :]]


def _axes_of(entry: Any) -> int:
    """Return how many dimensions an entry indexes: the rank of a mask, else 1."""
    if getattr(entry, "dtype", None) is torch.bool and not isinstance(entry, IrScalar):
        return int(entry.ndim)
    return 1


def _is_position(entry: Any) -> bool:
    return isinstance(entry, IrScalar) or (isinstance(entry, int) and not isinstance(entry, bool))


def _is_unit_step(step: Any) -> bool:
    return step is None or (type(step) is int and step == 1)


def _full(tensor: IrTensor, axis: int) -> DimSlice:
    return DimSlice(0, tensor.size(axis), is_full=True)


def _static_step(trace: TraceServices, entry: Any) -> Any:
    parts = (entry.start, entry.stop, entry.step) if isinstance(entry, slice) else ()
    if any(isinstance(part, IrScalar) for part in parts):
        trace.fail(
            "a slice with a step takes numbers, not traced values; slice first, then take the step"
        )
    return entry


def _position(trace: TraceServices, tensor: IrTensor, axis: int, entry: int | IrScalar) -> DimSlice:
    size = tensor.size(axis)
    if isinstance(entry, int) and is_static(size):
        if not -size <= entry < size:
            trace.fail(f"index {entry} is out of range for dimension {axis} of {tensor!r}")
        return DimSlice(entry % size, 1, is_full=size == 1)
    start = _from_end(trace, entry, size)
    trace.require(start >= 0, f"index below the start of dimension {axis} of {tensor}")
    trace.require(start < size, f"index beyond the end of dimension {axis} of {tensor}")
    return DimSlice(start, 1)


def _from_end(trace: TraceServices, value: Size, size: Size) -> Size:
    """Return a position from the start; a negative one counts from the end."""
    if isinstance(value, int):
        return value if value >= 0 else size + value
    position = index_of(trace, value)
    return select(trace, position < 0, position + size, position)


def _range(trace: TraceServices, tensor: IrTensor, axis: int, entry: slice) -> DimSlice:
    size = tensor.size(axis)
    if entry.start is None and entry.stop is None:
        return _full(tensor, axis)
    if is_static(size) and not any(
        isinstance(bound, IrScalar) for bound in (entry.start, entry.stop)
    ):
        low, high, _ = slice(entry.start, entry.stop).indices(size)
        return DimSlice(low, max(high - low, 0), is_full=(low, high) == (0, size))
    length = _known_length(trace, entry.start, entry.stop)
    if length is not None:
        first = index_scalar(trace, entry.start)
        trace.require(first >= 0, f"slice before the start of dimension {axis} of {tensor}")
        trace.require(
            first + length <= size, f"slice beyond the end of dimension {axis} of {tensor}"
        )
        return DimSlice(first, length)
    start = 0 if entry.start is None else _clamped(trace, entry.start, size)
    stop = size if entry.stop is None else _clamped(trace, entry.stop, size)
    return DimSlice(start, _length(start, stop))


def _known_length(trace: TraceServices, start: Any, stop: Any) -> Size | None:
    """Return the length of `i : i + n`, where `n` is a number or the size of a dimension."""
    if not isinstance(start, IrScalar) or not isinstance(stop, IrScalar):
        return None
    difference = stop.affine() - start.affine()
    if difference.constant is not None:
        return difference.constant if difference.constant >= 0 else None
    return dim_value_or_none(trace, difference.unknown)


def _clamped(trace: TraceServices, value: Size, size: Size) -> Size:
    """Return a bound of a slice from the start, clamped to the dimension."""
    position = _from_end(trace, value, size)
    if isinstance(position, IrScalar):
        return position.clamp(0, size)
    if isinstance(size, IrScalar):
        return size.clamp(max=position)
    return max(min(position, size), 0)


def _length(start: Size, stop: Size) -> Size:
    if is_static(start) and is_static(stop):
        return max(stop - start, 0)
    if is_static(start) and start == 0:
        return stop
    length = stop - start
    assert isinstance(length, IrScalar)
    return length.clamp(0)
