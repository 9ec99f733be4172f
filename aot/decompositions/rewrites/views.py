"""Views of dynamic sizes, as flatten and unflatten of groups of dimensions.

The compiler infers which dimensions of a `view` correspond, wrongly if several are dynamic, and
without an error. torch has the sizes as symbolic expressions, which are matched here.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from itertools import count
from typing import Any

import sympy
import torch
from torch.fx import Node

from .inserter import Inserter

aten = torch.ops.aten

TARGETS = (aten.view.default, aten.reshape.default, aten._unsafe_view.default)


@dataclass(frozen=True)
class Group:
    """Dimensions `source` of the input hold the same elements as `target` of the result."""

    source: range
    target: range


def rewrite_view(inserter: Inserter) -> None:
    """Rewrite a view that has dynamic sizes."""
    tensor, sizes = inserter.anchor.args
    assert isinstance(tensor, Node) and isinstance(sizes, (list, tuple))
    source = _expressions(tensor.meta["val"].shape)
    target = _expressions(inserter.anchor.meta["val"].shape)
    if all(size.is_number for size in source + target):
        return
    calls: list[tuple[Any, tuple[Any, ...]]] = []
    for group in reversed(match(source, target)):
        if [source[i] for i in group.source] == [target[i] for i in group.target]:
            continue
        first = group.source.start
        if len(group.source) > 1:
            calls.append((aten.flatten.using_ints, (first, group.source.stop - 1)))
        if len(group.target) > 1:
            wanted = [sizes[i] for i in group.target]
            if -1 in wanted:
                wanted = _without_minus_one(inserter, tensor, group, wanted)
            calls.append((aten.unflatten.int, (first, wanted)))
    _emit(inserter, tensor, calls)


def _without_minus_one(
    inserter: Inserter, tensor: Node, group: Group, wanted: list[Any]
) -> list[Any]:
    """Return the sizes with -1 replaced by a computed size, which the compiler does not do."""
    shape = tensor.meta["val"].shape
    size: Any = 1
    for axis in group.source:
        factor: Any = shape[axis]
        if isinstance(factor, torch.SymInt):
            factor = inserter.call(aten.sym_size.int, tensor, axis)
        size = _combine(inserter, operator.mul, size, factor)
    for divisor in wanted:
        if isinstance(divisor, Node) or divisor != -1:
            size = _combine(inserter, operator.floordiv, size, divisor)
    return [size if not isinstance(item, Node) and item == -1 else item for item in wanted]


def _combine(inserter: Inserter, function: Any, left: Any, right: Any) -> Any:
    if not isinstance(left, Node) and not isinstance(right, Node):
        return function(left, right)
    if not isinstance(right, Node) and right == 1:
        return left
    if function is operator.mul and not isinstance(left, Node) and left == 1:
        return right
    return inserter.call(function, left, right)


def _emit(inserter: Inserter, tensor: Node, calls: list[tuple[Any, tuple[Any, ...]]]) -> None:
    if not calls:
        inserter.become(aten.alias.default, tensor)
        return
    for target, arguments in calls[:-1]:
        tensor = inserter.call(target, tensor, *arguments)
    target, arguments = calls[-1]
    inserter.become(target, tensor, *arguments)


def match(source: list[sympy.Expr], target: list[sympy.Expr]) -> list[Group]:
    """Return the smallest groups of dimensions whose products are equal, in order.

    Example:
        >>> b, l = sympy.symbols("b l", positive=True, integer=True)
        >>> for group in match([b, l, sympy.Integer(8)], [b * l, sympy.Integer(8)]):
        ...     print(group)
        Group(source=range(0, 2), target=range(0, 1))
        Group(source=range(2, 3), target=range(1, 2))
    """
    groups: list[Group] = []
    i = j = 0
    while i < len(source) and j < len(target):
        group = _next_group(source, target, i, j)
        groups.append(group)
        i, j = group.source.stop, group.target.stop
    if groups and (i < len(source) or j < len(target)):
        last = groups.pop()
        groups.append(
            Group(range(last.source.start, len(source)), range(last.target.start, len(target)))
        )
    return groups


def _next_group(source: list[sympy.Expr], target: list[sympy.Expr], i: int, j: int) -> Group:
    left, right = source[i], target[j]
    m, n = i + 1, j + 1
    for _ in count():
        ratio = sympy.cancel(left / right)
        if ratio == 1:
            return Group(range(i, m), range(j, n))
        numerator, denominator = sympy.fraction(ratio)
        grow_target = denominator == 1 or (numerator != 1 and n - j <= m - i)
        if grow_target and n < len(target):
            right, n = right * target[n], n + 1
        elif m < len(source):
            left, m = left * source[m], m + 1
        elif n < len(target):
            right, n = right * target[n], n + 1
        else:
            return Group(range(i, m), range(j, n))
    raise AssertionError("unreachable")


def _expressions(shape: torch.Size) -> list[sympy.Expr]:
    return [
        size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size) for size in shape
    ]
