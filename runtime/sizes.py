"""Sizes of dynamic dimensions: named dimensions and expressions of them, as plain JSON.

A size is an `int`, the name of a dimension, or `[operator, size, size]` with an operator of
`OPERATORS`: `["*", 2, "batch"]` is twice the batch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Size: TypeAlias = Any  # int | str | list[operator, Size, Size]

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": max,
    "min": min,
}
"""The operators of size expressions: Python's, on integers."""


@dataclass(frozen=True)
class Dim:
    """A named dynamic dimension.

    Attributes:
        name: What the user calls it, or the tracer's symbol where the user gave no name.
        min: Smallest size (inclusive).
        max: Largest size (inclusive); None: no bound.
        opt: The size to optimise for; None: not stated.
        symbol: The symbol in the MLIR module.
    """

    name: str
    min: int = 0
    max: int | None = None
    opt: int | None = None
    symbol: str = ""

    def __str__(self) -> str:
        return f"{self.name}={self.bounds}"

    @property
    def bounds(self) -> str:
        """The range as text.

        Example:
            >>> Dim("batch", 1, 8).bounds, Dim("batch", 1).bounds
            ('1..8', '1..')
        """
        return f"{self.min}..{'' if self.max is None else self.max}"

    def contains(self, value: int) -> bool:
        """Tell whether `value` lies within the bounds.

        Example:
            >>> Dim("batch", 1, 8).contains(9)
            False
        """
        return self.min <= value and (self.max is None or value <= self.max)


def evaluate(size: Size, values: Mapping[str, int]) -> int | None:
    """Return the value of a size; None where a dimension is not in `values` or a divisor is 0.

    Example:
        >>> evaluate(["*", 2, "batch"], {"batch": 3})
        6
    """
    if isinstance(size, int):
        return size
    if isinstance(size, str):
        return values.get(size)
    name, left, right = size[0], evaluate(size[1], values), evaluate(size[2], values)
    if left is None or right is None or (right == 0 and name in ("//", "%")):
        return None
    return OPERATORS[name](left, right)


def names_in(size: Size) -> set[str]:
    """Return the dimensions that a size depends on.

    Example:
        >>> names_in(["*", 2, "batch"])
        {'batch'}
    """
    if isinstance(size, int):
        return set()
    if isinstance(size, str):
        return {size}
    return names_in(size[1]) | names_in(size[2])


def solve(size: Size, value: int) -> tuple[str, int] | None:
    """Return the one dimension of `size` and the value that makes `size` equal `value`.

    None where the size has no or several dimensions, is not linear, or no integer solves it.

    Example:
        >>> solve(["+", ["*", 2, "batch"], 1], 7)
        ('batch', 3)
        >>> solve(["*", 2, "batch"], 7) is None
        True
    """
    names = names_in(size)
    if len(names) != 1:
        return None
    (name,) = names
    at_0, at_1, at_2 = (evaluate(size, {name: x}) for x in (0, 1, 2))
    if at_0 is None or at_1 is None or at_2 is None:
        return None
    slope = at_1 - at_0
    if slope == 0 or at_2 - at_1 != slope or (value - at_0) % slope:
        return None
    solution = (value - at_0) // slope
    return (name, solution) if evaluate(size, {name: solution}) == value else None


def render(size: Size) -> str:
    """Return a size as text.

    Example:
        >>> render(["+", ["*", 2, "batch"], 1])
        '2*batch + 1'
    """
    if isinstance(size, (int, str)):
        return str(size)
    name, left, right = size[0], render(size[1]), render(size[2])
    if name in ("max", "min"):
        return f"{name}({left}, {right})"
    if name in ("+", "-"):
        return f"{left} {name} {right}"
    return f"{_atom(size[1])}{name}{_atom(size[2])}"


def _atom(size: Size) -> str:
    text = render(size)
    return text if isinstance(size, (int, str)) or size[0] in ("max", "min") else f"({text})"
