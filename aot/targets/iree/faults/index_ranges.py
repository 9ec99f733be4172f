"""Ranges of integers in the torch dialect: what is known of the elements of a tensor of indices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from iree.compiler.ir import DenseIntElementsAttr, Operation, OpResult, Value

from .emission import number_of, tensor_type

_DEEPEST = 12
"""How many operations back the elements are looked for."""

_MOST_ELEMENTS = 4096
"""Of a constant of more, the elements are not looked at."""

_MOVES = frozenset(
    f"torch.aten.{name}"
    for name in (
        "alias", "broadcast_to", "clone", "contiguous", "detach", "expand", "flatten.using_ints",
        "flip", "gather", "index.Tensor", "index_select", "permute", "repeat", "reshape",
        "select.int", "slice.Tensor", "squeeze", "squeeze.dim", "t", "transpose.int", "tril",
        "unflatten.int", "unsqueeze", "view",
    )
)  # fmt: skip
"""Operations whose elements are some of those of their first operand; those of `tril` also 0."""

_CONVERSIONS = frozenset(
    f"torch.{name}" for name in ("aten._to_copy", "aten.to.dtype", "prims.convert_element_type")
)

_PLACES = {
    "torch.aten.argmax": 0,
    "torch.aten.argmin": 0,
    "torch.aten.max.dim": 1,
    "torch.aten.min.dim": 1,
}
"""Operations of which a result is places along a dimension, and which."""

_FILLS = {
    "torch.aten.full": 1, "torch.aten.full_like": 1, "torch.aten.new_full": 2,
}  # fmt: skip

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
}  # fmt: skip


@dataclass(frozen=True)
class Range:
    """The least and the greatest value that elements may have, both included."""

    low: int
    high: int

    def within(self, low: int, high: int) -> bool:
        """Return whether all values are in a range.

        Example:
            >>> Range(0, 4).within(-5, 4), Range(-1, 4).within(0, 4)
            (True, False)
        """
        return low <= self.low and self.high <= high


def range_of(value: Value, depth: int = 0) -> Range | None:
    """Return the range of the elements of a tensor of integers.

    Args:
        value: A tensor of the torch dialect.
        depth: How many operations were looked at on the way to it.

    Returns:
        The range; None where nothing is known of the elements.
    """
    of_type = _range_of_type(value)
    if not isinstance(value, OpResult) or depth > _DEEPEST:
        return of_type
    op = value.owner.operation
    return _range_of_result(op, value.result_number, depth + 1) or of_type


def _range_of_type(value: Value) -> Range | None:
    element = tensor_type(value.type)[1]
    if element == "i1":
        return Range(0, 1)
    return Range(0, 255) if element == "ui8" else None


def _range_of_result(op: Operation, result: int, depth: int) -> Range | None:
    name = op.name
    if name == "torch.vtensor.literal":
        return _range_of_literal(op)
    if name in _MOVES:
        moved = range_of(op.operands[0], depth)
        return _union(moved, Range(0, 0)) if name == "torch.aten.tril" else moved
    if name in _CONVERSIONS:
        source = tensor_type(op.operands[0].type)[1]
        return range_of(op.operands[0], depth) if "i" in source else None
    if name in _PLACES and result == _PLACES[name]:
        return _places(op)
    if name in _FILLS:
        return _constant(op.operands[_FILLS[name]])
    if name.startswith("torch.aten.arange"):
        return _arange(op)
    if name in ("torch.aten.zeros", "torch.aten.zeros_like"):
        return Range(0, 0)
    if name == "torch.aten.remainder.Scalar":
        divisor = _constant(op.operands[1])
        return Range(0, divisor.low - 1) if divisor is not None and divisor.low > 0 else None
    if name == "torch.aten.clamp":
        return _clamped(op, depth)
    if name.startswith("torch.aten.where."):
        one, other = (
            _constant(value) or range_of(value, depth) for value in list(op.operands)[1:3]
        )
        return _union(one, other)
    if name == "torch.aten.cat":
        return _concatenated(op, depth)
    return _computed(op, depth)


def _range_of_literal(op: Operation) -> Range | None:
    value = op.attributes["value"]
    if not isinstance(value, DenseIntElementsAttr) or len(value) > _MOST_ELEMENTS:
        return None
    elements = [int(element) for element in value]
    return Range(min(elements), max(elements)) if elements else None


def _constant(value: Value) -> Range | None:
    number = number_of(value)
    return None if number is None or number != int(number) else Range(int(number), int(number))


def _places(op: Operation) -> Range | None:
    sizes, _ = tensor_type(op.operands[0].type)
    dim = _constant(op.operands[1])
    if dim is None or not sizes or not -len(sizes) <= dim.low < len(sizes):
        return None
    size = sizes[dim.low]
    return None if size is None else Range(0, max(size - 1, 0))


def _arange(op: Operation) -> Range | None:
    count = {
        "torch.aten.arange": 1,
        "torch.aten.arange.start": 2,
        "torch.aten.arange.start_step": 3,
    }
    numbers = [_constant(value) for value in list(op.operands)[: count.get(op.name, 0)]]
    if any(number is None for number in numbers):
        return None
    values = range(*(number.low for number in numbers if number is not None))
    return Range(min(values), max(values)) if values else None


def _clamped(op: Operation, depth: int) -> Range | None:
    given = range_of(op.operands[0], depth)
    low, high = _constant(op.operands[1]), _constant(op.operands[2])
    if given is not None:
        low, high = low or Range(given.low, given.low), high or Range(given.high, given.high)
        return Range(
            min(max(given.low, low.low), high.low), min(max(given.high, low.low), high.low)
        )
    return None if low is None or high is None else Range(min(low.low, high.low), high.low)


def _concatenated(op: Operation, depth: int) -> Range | None:
    parts = op.operands[0]
    if not isinstance(parts, OpResult) or parts.owner.operation.name != "torch.prim.ListConstruct":
        return None
    found: Range | None = None
    for number, part in enumerate(parts.owner.operation.operands):
        one = range_of(part, depth)
        found = one if number == 0 else _union(found, one)
        if found is None:
            return None
    return found


def _computed(op: Operation, depth: int) -> Range | None:
    """Return the range of a sum, difference or product."""
    family, _, kind = op.name.removeprefix("torch.aten.").partition(".")
    if family not in _ARITHMETIC or kind not in ("Tensor", "Scalar"):
        return None
    left = range_of(op.operands[0], depth)
    right = range_of(op.operands[1], depth) if kind == "Tensor" else _constant(op.operands[1])
    if left is None or right is None:
        return None
    if family != "mul" and (len(op.operands) < 3 or number_of(op.operands[2]) != 1):
        return None  # the second operand is scaled
    of = _ARITHMETIC[family]
    ends = [of(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    fits = -(2**31) <= min(ends) and max(ends) < 2**31
    return Range(min(ends), max(ends)) if fits else None


def _union(one: Range | None, other: Range | None) -> Range | None:
    if one is None or other is None:
        return None
    return Range(min(one.low, other.low), max(one.high, other.high))
