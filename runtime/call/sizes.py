"""Sizes of dimensions: named dynamic dimensions and expressions of them, as plain JSON.

A size is an `int`, the name of a dimension, or `[operator, size, size]` with an operator of
`OPERATORS`: `["*", 2, "batch"]` is twice the batch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

Size: TypeAlias = Annotated[Any, "size"]
"""An `int`, a name, or `[operator, Size, Size]`."""

UNKNOWN = "?"
"""The size of a dimension that is known only when the program runs."""

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


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The relations between sizes that a program may require."""


@dataclass(frozen=True)
class Constraint:
    """A relation between sizes that a program was specialised for.

    Example:
        >>> divisible = Constraint("==", ["%", "length", "n"], 0)
        >>> str(divisible), divisible.holds({"length": 6, "n": 4})
        ('length%n == 0', False)
    """

    relation: str
    left: Size
    right: Size

    def __str__(self) -> str:
        return f"{render(self.left)} {self.relation} {render(self.right)}"

    def holds(self, values: Mapping[str, int]) -> bool:
        """Tell whether the relation holds; True where one of its dimensions is unknown."""
        left, right = evaluate(self.left, values), evaluate(self.right, values)
        return left is None or right is None or RELATIONS[self.relation](left, right)


@dataclass(frozen=True)
class Dim:
    """A named dynamic dimension.

    Attributes:
        name: The user's name for it, or else the tracer's symbol.
        min: Smallest size (inclusive).
        max: Largest size (inclusive); None: no bound.
        opt: The size to optimise for, or None.
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


@dataclass(frozen=True)
class Profile:
    """One of several alternative sets of bounds: a call must fit at least one of them.

    Attributes:
        name: The user's name for it.
        bounds: `(min, opt, max)` by dimension; other dimensions have their own bounds.
    """

    name: str
    bounds: dict[str, tuple[int, int, int]]

    def __str__(self) -> str:
        ranges = (f"{name}={low}..{high}" for name, (low, _, high) in self.bounds.items())
        return f"{self.name!r} ({', '.join(ranges)})"

    def contains(self, values: Mapping[str, int]) -> bool:
        """Tell whether all of `values` lie within the bounds.

        Example:
            >>> token = Profile("token", {"length": (1, 1, 1)})
            >>> token.contains({"batch": 8, "length": 1}), token.contains({"length": 2})
            (True, False)
        """
        return all(
            low <= values[name] <= high
            for name, (low, _, high) in self.bounds.items()
            if name in values
        )


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


def linear(size: Size) -> tuple[str, int, int] | None:
    """Return `(name, factor, offset)` of a size that is `factor * name + offset`.

    None for a size of no or several dimensions, and for one that is not linear.

    Example:
        >>> linear(["+", ["*", 2, "batch"], 1])
        ('batch', 2, 1)
        >>> linear(["%", "batch", 4]) is None
        True
    """
    factors = _factors(size) or {}
    names = [name for name, factor in factors.items() if name and factor]
    return (names[0], factors[names[0]], factors[""]) if len(names) == 1 else None


def _factors(size: Size) -> dict[str, int] | None:
    """Return the factor of each dimension, and the number added under the empty name."""
    if isinstance(size, int):
        return {"": size}
    if isinstance(size, str):
        return {"": 0, size: 1}
    name, left, right = size[0], _factors(size[1]), _factors(size[2])
    if left is None or right is None:
        return None
    if name in ("+", "-"):
        return {k: OPERATORS[name](left.get(k, 0), right.get(k, 0)) for k in {**left, **right}}
    if name == "*" and len(left) == 1:
        return {k: factor * left[""] for k, factor in right.items()}
    if name == "*" and len(right) == 1:
        return {k: factor * right[""] for k, factor in left.items()}
    return None


def solve(size: Size, value: int) -> tuple[str, int] | None:
    """Return the one dimension of `size` and the value that makes `size` equal `value`.

    None where the size is not `linear`, or no integer solves it.

    Example:
        >>> solve(["+", ["*", 2, "batch"], 1], 7)
        ('batch', 3)
        >>> solve(["*", 2, "batch"], 7) is None
        True
    """
    found = linear(size)
    if found is None:
        return None
    name, factor, offset = found
    quotient, remainder = divmod(value - offset, factor)
    return None if remainder else (name, quotient)


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
    if name == "+":
        return f"{left} + {right}"
    if name == "-":
        is_sum = isinstance(size[2], list) and size[2][0] in ("+", "-")
        return f"{left} - {f'({right})' if is_sum else right}"
    return f"{_atom(size[1])}{name}{_atom(size[2])}"


def _atom(size: Size) -> str:
    text = render(size)
    return text if isinstance(size, (int, str)) or size[0] in ("max", "min") else f"({text})"
