"""Indexing of traced tensors, reading and writing, with static and dynamic positions.

What selects one box of the tensor (numbers, slices of step 1, `None`, `...`) becomes a slice or an
update. Other indices (tensors, lists, masks, steps) are torch's own indexing, of that box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ...spec.sizes import is_static
from .arithmetic import number_like
from .scalars import IrScalar

if TYPE_CHECKING:
    from ..module.trace import IrTrace
    from .tensors import IrTensor, Size


@dataclass(frozen=True)
class Span:
    """A range of positions in one dimension.

    Attributes:
        start: The first position.
        length: How many.
        whole: Whether it is the whole dimension.
    """

    start: Size
    length: Size
    whole: bool = False


@dataclass(frozen=True)
class Plan:
    """An index, taken apart.

    Attributes:
        spans: The box to take: one span for each dimension.
        shape: The shape of the box as the index gives it, without the dimensions of single
            positions and with the new ones; None where torch has to index the box.
        rest: The index for torch then.
    """

    spans: tuple[Span, ...]
    shape: tuple[Size, ...] | None
    rest: tuple[Any, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the box is the whole tensor."""
        return all(span.whole for span in self.spans)

    @property
    def keeps_shape(self) -> bool:
        """Whether the index gives the box as it is."""
        return self.shape is not None and len(self.rest) == len(self.spans) == len(self.shape)


def read(tensor: IrTensor, index: Any) -> IrTensor:
    """Return the part of a tensor at an index.

    Raises:
        ProcedureTraceError: The index does not fit the tensor.
    """
    trace = tensor.trace
    plan = plan_index(tensor, index)
    box = tensor if plan.whole else trace.slice(tensor, plan.spans)
    if plan.shape is None:
        part = trace.call_torch(_getitem, (box, plan.rest))
    elif plan.keeps_shape:
        part = box
    else:
        part = trace.reshape(box, plan.shape)
    return trace.part_of(part, tensor, index)


def write(tensor: IrTensor, index: Any, value: Any) -> IrTensor:
    """Return a tensor in which the part at an index is replaced.

    Args:
        tensor: The tensor; it stays as it is.
        index: What to replace.
        value: A tensor or number; it is converted and expanded as torch does.

    Raises:
        ProcedureTraceError: The index does not fit the tensor, or the value does not fit the part.
    """
    trace = tensor.trace
    plan = plan_index(tensor, index)
    if plan.shape is None:
        box = tensor if plan.whole else trace.slice(tensor, plan.spans)
        changed = trace.call_torch(_setitem, (box, plan.rest, value))
    else:
        changed = _fill(trace, tensor, plan, value)
    return changed if plan.whole else trace.update(tensor, changed, plan.spans)


def _fill(trace: IrTrace, tensor: IrTensor, plan: Plan, value: Any) -> IrTensor:
    """Return `value` in the shape of the box, converted to the tensor's element type."""
    lengths = tuple(span.length for span in plan.spans)
    if number_like(value) or isinstance(value, IrScalar):
        return trace.splat(lengths, value, tensor.dtype)
    given = trace.tensor(value, f"the value assigned to a part of {tensor!r}")
    assert plan.shape is not None
    if given.dtype != tensor.dtype or not _same_shape(given.shape, plan.shape):
        if all(is_static(size) for size in plan.shape):
            given = trace.call_torch(_fit, (given, tensor.dtype, plan.shape))
        else:
            box = trace.slice(tensor, plan.spans)
            model = box if plan.keeps_shape else trace.reshape(box, plan.shape)
            given = trace.call_torch(_fit_like, (given, model))
    return given if plan.keeps_shape else trace.reshape(given, lengths)


def _same_shape(left: tuple[Size, ...], right: tuple[Size, ...]) -> bool:
    return len(left) == len(right) and all(
        same_size(a, b) for a, b in zip(left, right, strict=True)
    )


def same_size(left: Size, right: Size) -> bool:
    """Return whether two sizes are known to be equal while tracing."""
    if is_static(left) or is_static(right):
        return is_static(left) and is_static(right) and left == right
    return (left.affine() - right.affine()).constant == 0


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


def plan_index(tensor: IrTensor, index: Any) -> Plan:
    """Take an index apart.

    Raises:
        ProcedureTraceError: It has too many entries, or one is out of range.
    """
    trace = tensor.trace
    entries = _expand(tensor, index if isinstance(index, tuple) else (index,))
    spans: list[Span] = []
    shape: list[Size] = []
    rest: list[Any] = []
    plain = True
    for entry in entries:
        if entry is None:
            shape.append(1)
            rest.append(None)
            continue
        axis = len(spans)
        if _is_position(entry):
            spans.append(_position(trace, tensor, axis, entry))
            rest.append(0)
        elif isinstance(entry, slice) and _is_number(entry.step, 1):
            span = _range(trace, tensor, axis, entry)
            spans.append(span)
            shape.append(span.length)
            rest.append(slice(None))
        else:
            plain = False
            for number in range(_axes_of(entry)):
                spans.append(_whole(tensor, axis + number))
            rest.append(_static_step(trace, entry))
    return Plan(tuple(spans), tuple(shape) if plain else None, tuple(rest))


def _expand(tensor: IrTensor, entries: tuple[Any, ...]) -> list[Any]:
    """Return the entries with whole slices for `...` and for what is not mentioned."""
    used = sum(_axes_of(entry) for entry in entries if entry is not None and entry is not ...)
    if used > tensor.rank or sum(entry is ... for entry in entries) > 1:
        tensor.trace.fail(f"an index of {used} entries does not fit {tensor!r}")
    fill = [slice(None)] * (tensor.rank - used)
    if not any(entry is ... for entry in entries):
        return [*entries, *fill]
    place = next(number for number, entry in enumerate(entries) if entry is ...)
    return [*entries[:place], *fill, *entries[place + 1 :]]


def _axes_of(entry: Any) -> int:
    """Return how many dimensions an entry indexes: a mask as many as it has."""
    if getattr(entry, "dtype", None) is torch.bool and not isinstance(entry, IrScalar):
        return int(entry.ndim)
    return 1


def _is_position(entry: Any) -> bool:
    return isinstance(entry, IrScalar) or (isinstance(entry, int) and not isinstance(entry, bool))


def _is_number(value: Any, number: int) -> bool:
    return value is None or (type(value) is int and value == number)


def _whole(tensor: IrTensor, axis: int) -> Span:
    return Span(0, tensor.size(axis), whole=True)


def _static_step(trace: IrTrace, entry: Any) -> Any:
    parts = (entry.start, entry.stop, entry.step) if isinstance(entry, slice) else ()
    if any(isinstance(part, IrScalar) for part in parts):
        trace.fail(
            "a slice with a step takes numbers, not traced values; slice first, then take the step"
        )
    return entry


def _position(trace: IrTrace, tensor: IrTensor, axis: int, entry: int | IrScalar) -> Span:
    size = tensor.size(axis)
    if is_static(entry) and is_static(size):
        if not -size <= entry < size:
            trace.fail(f"index {entry} is out of range for dimension {axis} of {tensor!r}")
        return Span(entry % size, 1, whole=size == 1)
    start = _from_end(trace, entry, size)
    trace.require(start >= 0, f"index below the start of dimension {axis} of {tensor}")
    trace.require(start < size, f"index beyond the end of dimension {axis} of {tensor}")
    return Span(start, 1)


def _from_end(trace: IrTrace, value: Size, size: Size) -> Size:
    """Return a position with what counts from the end counted from the start."""
    if isinstance(value, int):
        return value if value >= 0 else size + value
    position = trace.index(value)
    return trace.select(position < 0, position + size, position)


def _range(trace: IrTrace, tensor: IrTensor, axis: int, entry: slice) -> Span:
    size = tensor.size(axis)
    if entry.start is None and entry.stop is None:
        return _whole(tensor, axis)
    if is_static(size) and not any(
        isinstance(bound, IrScalar) for bound in (entry.start, entry.stop)
    ):
        low, high, _ = slice(entry.start, entry.stop).indices(size)
        return Span(low, max(high - low, 0), whole=(low, high) == (0, size))
    length = _known_length(trace, entry.start, entry.stop)
    if length is not None:
        first = trace.index(entry.start)
        trace.require(first >= 0, f"slice before the start of dimension {axis} of {tensor}")
        trace.require(
            first + length <= size, f"slice beyond the end of dimension {axis} of {tensor}"
        )
        return Span(first, length)
    start = 0 if entry.start is None else _bounded(trace, entry.start, size)
    stop = size if entry.stop is None else _bounded(trace, entry.stop, size)
    return Span(start, _length(start, stop))


def _known_length(trace: IrTrace, start: Any, stop: Any) -> Size | None:
    """Return the length of `i : i + n`, where `n` is a number or the size of a dimension."""
    if not isinstance(start, IrScalar) or not isinstance(stop, IrScalar):
        return None
    difference = stop.affine() - start.affine()
    if difference.constant is not None:
        return difference.constant if difference.constant >= 0 else None
    return trace.size_of(difference.unknown)


def _bounded(trace: IrTrace, value: Size, size: Size) -> Size:
    """Return a bound of a slice, counted from the start and limited to the dimension."""
    position = _from_end(trace, value, size)
    if is_static(position):
        if is_static(size):
            return max(min(position, size), 0)
        return size.clamp(max=position)
    return position.clamp(0, size)


def _length(start: Size, stop: Size) -> Size:
    if is_static(start) and is_static(stop):
        return max(stop - start, 0)
    if is_static(start) and start == 0:
        return stop
    length = stop - start
    assert isinstance(length, IrScalar)
    return length.clamp(0)
