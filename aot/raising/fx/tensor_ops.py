"""Operations of `tensor` and `flow`: sizes, elements, slices, fills.

A box whose start is known only at run time is taken by its positions (`index_select`), so that its
size is known beforehand; torch's slices would make a size that depends on data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from iree.compiler.ir import Operation, ShapedType, StringAttr
from torch.fx import Node

from ...spec.errors import UnsupportedOpError
from ...spec.sizes import is_static
from . import effects
from .raiser import HandlerTable, Raiser, extents
from .scope import dtype_of
from .types import tensor_type, value_dtype

aten = torch.ops.aten


def _same(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, raiser.value(op.operands[0]))


def _bitcast(raiser: Raiser, op: Operation) -> None:
    dtype = value_dtype(op.results[0].type)
    value = raiser.value(op.operands[0])
    raiser.bind(op, raiser.emit(aten.view.dtype, value, dtype, dtype=dtype))


def _dim(raiser: Raiser, op: Operation) -> None:
    tensor, axis = raiser.values(op.operands)
    type_ = tensor_type(op.operands[0].type)
    assert type_ is not None
    size = type_.shape[axis]
    raiser.bind(op, raiser.emit(aten.sym_size.int, tensor, axis) if size is None else size)


def _from_elements(raiser: Raiser, op: Operation) -> None:
    values = raiser.values(op.operands)
    held = [found for value in values if (found := dtype_of(value)) is not None]
    dtype = held[0] if held else value_dtype(op.results[0].type)
    elements = [raiser.as_tensor(value, dtype) for value in values]
    shape = extents(raiser, op.results[0].type, ())
    if not shape:
        raiser.bind(op, elements[0])
        return
    if not elements:
        raiser.bind(op, _filled(raiser, shape, 0, dtype))
        return
    stacked = raiser.emit(aten.stack.default, elements, dtype=dtype)
    raiser.bind(op, raiser.emit(aten.reshape.default, stacked, shape, dtype=dtype))


def _extract(raiser: Raiser, op: Operation) -> None:
    tensor, *places = raiser.values(op.operands)
    dtype = dtype_of(tensor)
    for place in places:
        if isinstance(place, int):
            tensor = raiser.emit(aten.select.int, tensor, 0, place, dtype=dtype)
        else:
            found = _take(raiser, tensor, 0, place, 1)
            tensor = raiser.emit(aten.squeeze.dim, found, 0, dtype=dtype)
    raiser.bind(op, tensor)


def _reshape(raiser: Raiser, op: Operation) -> None:
    view = op.opview
    source = raiser.value(view.source)
    shape = extents(raiser, view.result.type, view.result_dims)
    raiser.bind(op, raiser.emit(aten.reshape.default, source, shape, dtype=dtype_of(source)))


def _empty(raiser: Raiser, op: Operation) -> None:
    view = op.opview
    dtype = value_dtype(view.result.type)
    raiser.bind(op, _filled(raiser, extents(raiser, view.result.type, view.result_dims), 0, dtype))


def _splat(raiser: Raiser, op: Operation) -> None:
    view = op.opview
    value = raiser.value(view.value)
    shape = extents(raiser, view.result.type, view.result_dims)
    dtype = dtype_of(value) or value_dtype(view.result.type)
    raiser.bind(op, _filled(raiser, shape, value, dtype))


def _filled(raiser: Raiser, shape: Sequence[Any], value: Any, dtype: torch.dtype) -> Node:
    if dtype_of(value) is None:
        made = {"dtype": dtype}
        return raiser.emit(aten.full.default, shape, value, dtype=dtype, keywords=made)
    return raiser.emit(aten.expand.default, value, shape, dtype=dtype)


def _slice(raiser: Raiser, op: Operation) -> None:
    view = op.opview
    box = raiser.value(view.source)
    sizes = extents(raiser, view.source.type, view.source_dims)
    starts = raiser.values(view.start_indices)
    lengths = _lengths(raiser, view)
    for axis, (start, length, size) in enumerate(zip(starts, lengths, sizes, strict=True)):
        if not _is_whole(start, length, size):
            box = _take(raiser, box, axis, start, length)
    raiser.bind(op, box)


def _lengths(raiser: Raiser, view: Any) -> list[Any]:
    """Return the lengths of a slice: those in its result's type, and values for the others."""
    type_ = tensor_type(view.result.type)
    assert type_ is not None
    given = raiser.values(view.lengths)
    return [
        raiser.as_size(value) if size is None else size
        for size, value in zip(type_.shape, given, strict=True)
    ]


def _update(raiser: Raiser, op: Operation) -> None:
    view = op.opview
    target, update = raiser.value(view.target), raiser.value(view.update)
    sizes = extents(raiser, view.target.type, view.target_dims)
    lengths = extents(raiser, view.update.type, view.update_dims)
    starts = raiser.values(view.start_indices)
    boxes = [
        (axis, start, length)
        for axis, (start, length, size) in enumerate(zip(starts, lengths, sizes, strict=True))
        if not _is_whole(start, length, size)
    ]
    raiser.bind(op, _put(raiser, target, update, boxes))


def _put(raiser: Raiser, target: Node, update: Node, boxes: list[tuple[int, Any, Any]]) -> Node:
    """Return `target` with a box replaced, one dimension after the other."""
    if not boxes:
        return update
    (axis, start, length), *rest = boxes
    if rest:
        update = _put(raiser, _take(raiser, target, axis, start, length), update, rest)
    dtype = dtype_of(target)
    if is_static(start):
        end = _end(raiser, start, length)
        return raiser.emit(
            aten.slice_scatter.default, target, update, axis, start, end, dtype=dtype
        )
    places = _positions(raiser, start, length)
    return raiser.emit(aten.index_copy.default, target, axis, places, update, dtype=dtype)


def _is_whole(start: Any, length: Any, size: Any) -> bool:
    return is_static(start) and start == 0 and (length is size or length == size)


def _take(raiser: Raiser, tensor: Node, axis: int, start: Any, length: Any) -> Node:
    dtype = dtype_of(tensor)
    if is_static(start):
        end = _end(raiser, start, length)
        return raiser.emit(aten.slice.Tensor, tensor, axis, start, end, dtype=dtype)
    places = _positions(raiser, start, length)
    return raiser.emit(aten.index_select.default, tensor, axis, places, dtype=dtype)


def _end(raiser: Raiser, start: int, length: Any) -> Any:
    if start == 0 or is_static(length):
        return start + length if is_static(length) else length
    return raiser.emit(_plus, length, start)


def _plus(left: Any, right: Any) -> Any:
    return left + right


def _positions(raiser: Raiser, start: Any, length: Any) -> Node:
    first = raiser.as_tensor(start, torch.int64)
    if is_static(length) and length == 1:
        return raiser.emit(aten.reshape.default, first, [1], dtype=torch.int64)
    numbers = raiser.emit(aten.arange.default, length, dtype=torch.int64)
    return raiser.emit(aten.add.Tensor, numbers, first, dtype=torch.int64)


def _extract_slice(raiser: Raiser, op: Operation) -> None:
    view = op.opview
    box = raiser.value(view.source)
    type_ = tensor_type(view.source.type)
    assert type_ is not None
    starts, lengths = _spans(raiser, view)
    for axis, (start, length, size) in enumerate(zip(starts, lengths, type_.shape, strict=True)):
        if size is None or not _is_whole(start, length, size):
            box = _take(raiser, box, axis, start, length)
    kept = tensor_type(view.result.type)
    assert kept is not None
    if len(kept.shape) != len(lengths):
        raise UnsupportedOpError("tensor.extract_slice that drops dimensions")
    raiser.bind(op, box)


def _insert_slice(raiser: Raiser, op: Operation) -> None:
    view = op.opview
    type_ = tensor_type(view.dest.type)
    assert type_ is not None
    starts, lengths = _spans(raiser, view)
    boxes = [
        (axis, start, length)
        for axis, (start, length, size) in enumerate(zip(starts, lengths, type_.shape, strict=True))
        if size is None or not _is_whole(start, length, size)
    ]
    raiser.bind(op, _put(raiser, raiser.value(view.dest), raiser.value(view.source), boxes))


def _spans(raiser: Raiser, view: Any) -> tuple[list[Any], list[Any]]:
    """Return the starts and lengths of a slice of the tensor dialect.

    Raises:
        UnsupportedOpError: It has steps.
    """
    if any(step != 1 for step in view.static_strides):
        raise UnsupportedOpError(f"{view.operation.name} with a step")
    dynamic = ShapedType.get_dynamic_stride_or_offset()
    starts, lengths = (
        [raiser.value(next(given)) if number == dynamic else number for number in static]
        for given, static in (
            (iter(view.offsets), view.static_offsets),
            (iter(view.sizes), view.static_sizes),
        )
    )
    return starts, [raiser.as_size(length) for length in lengths]


def _trace(raiser: Raiser, op: Operation) -> None:
    title = StringAttr(op.attributes["key"]).value
    raiser.emit_effect(effects.show, title, *raiser.values(op.opview.values))


def _transfer(raiser: Raiser, op: Operation) -> None:
    """Raise a move to another device: a graph has one device."""
    raiser.bind(op, raiser.value(op.opview.operand))


HANDLERS: HandlerTable = {
    "tensor.cast": _same,
    "tensor.dim": _dim,
    "tensor.extract": _extract,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.from_elements": _from_elements,
    "flow.tensor.bitcast": _bitcast,
    "flow.tensor.empty": _empty,
    "flow.tensor.reshape": _reshape,
    "flow.tensor.slice": _slice,
    "flow.tensor.splat": _splat,
    "flow.tensor.trace": _trace,
    "flow.tensor.transfer": _transfer,
    "flow.tensor.update": _update,
}
"""Operations of procedures on tensors."""
