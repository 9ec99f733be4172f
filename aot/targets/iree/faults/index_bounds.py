"""Bounds of indices: what an index addresses is an element, or the call raises.

IREE (3.13) reads and writes wherever an index points: a negative index of `index_put` writes before
the buffer, one beyond the end after it, and whoever calls a program may choose it. So every index
that is not known to be in range (`index_ranges.py`) is clamped, which keeps reads and writes within
the buffer, and checked: one number says at the end of a function whether an index was out of range,
and of which operator, so that the host waits for the program once, when its results are due.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from iree.compiler.ir import (
    Block,
    InsertionPoint,
    Location,
    Operation,
    OpResult,
    StringAttr,
    Value,
)

from pelton.runtime.errors import INDEX_OUT_OF_RANGE

from ....ir.module import operations_within
from ....ir.torch_types import TensorType
from ....spec.locations import location_of_op
from .emission import Emitter, number_of, tensor_type, with_element
from .index_ranges import range_of

_ONE_INDEX = {
    f"torch.aten.{name}": place
    for name, place in {
        "embedding": 1, "gather": 2, "index_select": 2, "scatter.reduce": 2, "scatter.src": 2,
        "scatter.value": 2, "scatter.value_reduce": 2, "scatter_add": 2, "scatter_reduce.two": 2,
    }.items()
}  # fmt: skip
"""Operations that take one tensor of indices, which operand it is; from 0 on, as for eager."""

_INDEX_LISTS = frozenset(
    f"torch.aten.{name}"
    for name in ("index.Tensor", "index.Tensor_hacked_twin", "index_put",
                 "index_put.hacked_twin", "_unsafe_index.Tensor", "_unsafe_index_put")
)  # fmt: skip
"""Operations that take a list of tensors of indices, one for each dimension; negative ones too."""

_COUNTED = {"torch.aten.one_hot": 1}
"""Operations of classes, and which operand is their number; -1: as many as there are."""

_BINS = "torch.aten.bincount"
"""Counts the elements of each value, in as many bins as the greatest value asks for."""

_SELECT = "torch.aten.select.int"
_INTEGERS = ("si8", "ui8", "si16", "si32", "si64")
_CHECKS_BEFORE = ("util.global.store", "func.return", "torch.prim.If.yield", "scf.yield")


@dataclass(frozen=True)
class _Check:
    """A check of indices that has been computed.

    Attributes:
        failed: A tensor of one bool, whether an index is out of range.
        message: What the error says.
        location: Where the indices are used.
    """

    failed: Value
    message: str
    location: Location


@dataclass
class _Bounds:
    """The checks of one block, and the indices that are in range already.

    Attributes:
        checks: The checks, in the order of the program.
        bounded: The bounded indices by given ones, the static size and whether negative ones count.
    """

    checks: list[_Check] = field(default_factory=list)
    bounded: dict[tuple[Value, int, bool], Value] = field(default_factory=dict)


def bound_indices(module_op: Operation) -> None:
    """Clamp and check the indices of a module in the torch dialect; it is changed in place."""
    blocks: dict[Block, _Bounds] = {}
    names = (*_ONE_INDEX, *_INDEX_LISTS, *_COUNTED, _BINS, _SELECT)
    for op in operations_within(module_op, *names):
        bounds = blocks.setdefault(op.block, _Bounds())
        if op.name in _ONE_INDEX:
            _bound_one(op, _ONE_INDEX[op.name], bounds)
        elif op.name in _INDEX_LISTS:
            _bound_list(op, bounds)
        elif op.name in _COUNTED:
            _check_classes(op, bounds)
        elif op.name == _BINS:
            _bound_bins(op, bounds)
        else:
            _check_selection(op)
    for block, bounds in blocks.items():
        if bounds.checks:
            _raise_before_the_end(block, bounds.checks)


def _bound_one(op: Operation, place: int, bounds: _Bounds) -> None:
    sizes, _ = tensor_type(op.operands[0].type)
    dim = 0 if op.name == "torch.aten.embedding" else number_of(op.operands[1])
    if dim is not None and sizes:  # the index of a tensor without dimensions can only be 0
        bounded = _bounded(op, op.operands[place], int(dim) % len(sizes), bounds)
        op.operands[place] = bounded


def _bound_list(op: Operation, bounds: _Bounds) -> None:
    listed = op.operands[1]
    sizes, _ = tensor_type(op.operands[0].type)
    if (
        not isinstance(listed, OpResult)
        or listed.owner.operation.name != "torch.prim.ListConstruct"
    ):
        return
    indices = list(listed.owner.operation.operands)
    if len(indices) > len(sizes):
        return
    bounded = [
        _bounded(op, index, dim, bounds) if tensor_type(index.type)[1] in _INTEGERS else index
        for dim, index in enumerate(indices)
    ]
    if bounded != indices:
        op.operands[1] = Emitter(op).make("prim.ListConstruct", str(listed.type), *bounded)


def _bounded(op: Operation, index: Value, dim: int, bounds: _Bounds) -> Value:
    """Return indices that are in range, and add the check of those that are given.

    Args:
        op: The operation that uses them.
        index: The indices.
        dim: The dimension of the first operand that they are places of.
        bounds: The bounds of the operation's block.
    """
    size, known = tensor_type(op.operands[0].type)[0][dim], range_of(index)
    wraps = op.name in _INDEX_LISTS
    if 0 in tensor_type(index.type)[0]:
        return index  # of no elements
    if size is None:
        return _clamped(op, index, dim, bounds, wraps=wraps)
    if known is not None and known.within(0, size - 1):
        return index
    key = (index, size, wraps)
    if key not in bounds.bounded:
        if wraps and known is not None and known.within(-size, size - 1):
            emit = Emitter(op)
            bounds.bounded[key] = _wrapped(emit, emit.converted(index, "si64"), emit.number(size))
        else:
            bounds.bounded[key] = _clamped(op, index, dim, bounds, wraps=wraps)
    return bounds.bounded[key]


def _wrapped(emit: Emitter, index: Value, size: Value) -> Value:
    """Return indices of which negative ones count from the end."""
    negative = emit.make("aten.lt.Scalar", with_element(index.type, "i1"), index, emit.number(0))
    from_end = emit.like("aten.add.Scalar", index, size, emit.number(1))
    return emit.make("aten.where.self", str(index.type), negative, from_end, index)


def _clamped(op: Operation, index: Value, dim: int, bounds: _Bounds, *, wraps: bool) -> Value:
    """Return indices moved into the range of a dimension, and add the check that none is moved."""
    emit = Emitter(op)
    index = emit.converted(index, "si64")
    static = tensor_type(op.operands[0].type)[0][dim]
    if static is None:
        size = emit.make("aten.size.int", "!torch.int", op.operands[0], emit.number(dim))
        last = emit.make("aten.sub.int", "!torch.int", size, emit.number(1))
    else:
        size, last = emit.number(static), emit.number(static - 1)
    if wraps:
        index = _wrapped(emit, index, size)
    of = f"dimension {dim}" + (f" of size {static}" if static is not None else "")
    return _checked(op, emit, index, last, f"an index is out of range for {of}", bounds)


def _checked(
    op: Operation, emit: Emitter, index: Value, last: Value, text: str, bounds: _Bounds
) -> Value:
    """Return indices clamped to 0 and the last one, and add the check that they are the same.

    Args:
        op: The operation that uses them.
        emit: Makes operations before it.
        index: The indices, of si64.
        last: The greatest index; the constant None: any.
        text: What the message says.
        bounds: Gets the check.
    """
    clamped = emit.like("aten.clamp", index, emit.number(0), last)
    moved = emit.make("aten.ne.Tensor", with_element(index.type, "i1"), index, clamped)
    failed = emit.make("aten.any", "!torch.vtensor<[],i1>", moved)
    bounds.checks.append(_Check(failed, _message(op, text), op.location))
    return clamped


def _message(op: Operation, text: str) -> str:
    name = op.name.removeprefix("torch.aten.").partition(".")[0]
    line = location_of_op(op)
    return f"{INDEX_OUT_OF_RANGE}{name}: {text}" + (f" (at {line})" if line else "")


def _check_classes(op: Operation, bounds: _Bounds) -> None:
    """Check the classes of a one-hot encoding, which reads and writes at no index."""
    count, known = number_of(op.operands[_COUNTED[op.name]]), range_of(op.operands[0])
    if count is None or count < 1 or (known is not None and known.within(0, int(count) - 1)):
        return
    emit = Emitter(op)
    classes, last = emit.converted(op.operands[0], "si64"), emit.number(int(count) - 1)
    _checked(op, emit, classes, last, f"a class is out of range for {int(count)} classes", bounds)


def _bound_bins(op: Operation, bounds: _Bounds) -> None:
    known = range_of(op.operands[0])
    if known is None or known.low < 0:
        emit = Emitter(op)
        values = emit.converted(op.operands[0], "si64")
        text = "a value is negative"
        op.operands[0] = _checked(op, emit, values, emit.none(), text, bounds)


def _check_selection(op: Operation) -> None:
    """Check a place that is a number of the program; the host knows it, and waits for nothing."""
    place = op.operands[2]
    sizes, _ = tensor_type(op.operands[0].type)
    dim = number_of(op.operands[1])
    if number_of(place) is not None or dim is None or not sizes:
        return
    emit = Emitter(op)
    count = emit.make("aten.size.int", "!torch.int", op.operands[0], emit.number(int(dim)))
    negated = emit.make("aten.neg.int", "!torch.int", count)
    above = emit.make("aten.ge.int", "!torch.bool", place, negated)
    below = emit.make("aten.lt.int", "!torch.bool", place, count)
    text = _message(op, f"an index is out of range for dimension {int(dim) % len(sizes)}")
    for holds in (above, below):
        _assert(InsertionPoint(op), op.location, holds, text)


def _assert(point: InsertionPoint, location: Location, holds: Value, message: str) -> None:
    with location.context, point, location:
        Operation.create(
            "torch.runtime.assert",
            operands=[holds],
            attributes={"message": StringAttr.get(message)},
        )


def _raise_before_the_end(block: Block, checks: Sequence[_Check]) -> None:
    """Raise the first failed check of a block before what it computes is stored or returned."""
    operations = [op.operation for op in block.operations]
    last = max(operations.index(check.failed.owner.operation) for check in checks)
    end = next((op for op in operations[last:] if op.name in _CHECKS_BEFORE), operations[-1])
    emit = Emitter(end)
    scalar = TensorType((), "si64").torch()
    codes = []  # the number of checks that are left for the first one that failed, otherwise 0
    for left, check in zip(range(len(checks), 0, -1), checks, strict=True):
        failed = emit.converted(check.failed, "si64")
        codes.append(emit.make("aten.mul.Scalar", scalar, failed, emit.number(left)))
    greatest = functools.reduce(lambda a, b: emit.like("aten.maximum", a, b), codes)
    code = emit.make("aten.Int.Tensor", "!torch.int", greatest)
    for left, check in zip(range(len(checks), 0, -1), checks, strict=True):
        holds = emit.make("aten.ne.int", "!torch.bool", code, emit.number(left))
        _assert(InsertionPoint(end), check.location, holds, check.message)
