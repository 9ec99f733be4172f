"""Shape patterns of custom operators: named sizes, as in `einsum`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...spec.errors import ExportError

REST = "..."
"""In a pattern: any number of leading dimensions, the same ones wherever it stands."""

Require: TypeAlias = Callable[[Any, Any, str], None]
"""Checks that two sizes are equal; the text describes the check."""

_OF_REST = re.compile(r"d\d+")
_SIZE = re.compile(r"[A-Za-z_]\w*|\d+")


@dataclass(frozen=True)
class Shape:
    """The sizes of one tensor: names and numbers.

    Attributes:
        sizes: The names and numbers of its dimensions, without those that `...` stands for.
        rest: Whether `...` stands before them.
    """

    sizes: tuple[str, ...]
    rest: bool = False

    def names(self, rank_of_rest: int) -> tuple[str, ...]:
        """Return the names of all dimensions; those of `...` are `d0`, `d1`, …"""
        leading = tuple(f"d{axis}" for axis in range(rank_of_rest)) if self.rest else ()
        return (*leading, *self.sizes)

    def __str__(self) -> str:
        return " ".join((REST, *self.sizes) if self.rest else self.sizes)


@dataclass(frozen=True)
class ShapePattern:
    """The shapes of all tensor arguments and of all results.

    Attributes:
        arguments: One for each tensor argument, in order.
        results: One for each result, in order.
    """

    arguments: tuple[Shape, ...]
    results: tuple[Shape, ...]

    @staticmethod
    def parse(text: str) -> ShapePattern:
        """Read a pattern.

        Args:
            text: The shapes of the arguments, `->`, and the shapes of the results.

        Raises:
            ExportError: The text is no pattern, or a result has a size that no argument has.

        Example:
            >>> str(ShapePattern.parse("... d, d -> ... d"))
            '... d, d -> ... d'
        """
        left, arrow, right = text.partition("->")
        if not arrow:
            raise ExportError(f"the shapes {text!r} have no '->' before those of the results")
        pattern = ShapePattern(_shapes(left, text), _shapes(right, text))
        own = [n for s in (*pattern.arguments, *pattern.results) for n in s.sizes]
        if REST in text and any(_OF_REST.fullmatch(name) for name in own):
            raise ExportError(
                f"the shapes {text!r}: d0, d1, … are the sizes that {REST} stands for"
            )
        known = {name for shape in pattern.arguments for name in shape.sizes}
        for shape in pattern.results:
            free = [name for name in shape.sizes if name not in known and not name.isdigit()]
            if shape.rest and not any(given.rest for given in pattern.arguments):
                free.append(REST)
            if free:
                raise ExportError(
                    f"the shapes {text!r}: a result has the size {', '.join(free)}, which no "
                    "argument has"
                )
        return pattern

    def rank_of_rest(self, ranks: Sequence[int | None]) -> int:
        """Return how many dimensions `...` stands for.

        Args:
            ranks: The rank of each tensor argument; None for one that is absent.

        Raises:
            ExportError: An argument has another number of dimensions than its shape.
        """
        found: int | None = None
        for position, (shape, rank) in enumerate(zip(self.arguments, ranks, strict=True)):
            if rank is None:
                continue
            left = rank - len(shape.sizes)
            fits = left >= 0 and left == (found if found is not None else left)
            if not (fits if shape.rest else left == 0):
                raise ExportError(
                    f"tensor argument {position} has {rank} dimensions, its shape is [{shape}]"
                    + (f" with {found} for {REST}" if shape.rest and found is not None else "")
                )
            found = left if shape.rest else found
        return found or 0

    def bind(
        self, tensors: Sequence[Sequence[Any] | None], names: Sequence[str], require: Require
    ) -> dict[str, Any]:
        """Return the size that each name stands for, and require that all say the same.

        Args:
            tensors: The sizes of each tensor argument; None for one that is absent.
            names: What the arguments are called.
            require: Checks two sizes.

        Raises:
            ExportError: An argument has another number of dimensions than its shape.
        """
        ranks = [None if sizes is None else len(sizes) for sizes in tensors]
        rest = self.rank_of_rest(ranks)
        sizes: dict[str, Any] = {}
        for name, shape, given in zip(names, self.arguments, tensors, strict=True):
            for axis, (dim, size) in enumerate(zip(shape.names(rest), given or (), strict=False)):
                known = int(dim) if dim.isdigit() else sizes.setdefault(dim, size)
                if known is not size:
                    require(size, known, f"size {axis} of {name} must be {dim}")
        return sizes

    def loops(self, rank_of_rest: int) -> tuple[tuple[str, ...], int]:
        """Return the names of all dimensions, those of the results first, and how many those are.

        They are the loops of a `linalg.generic`: the first ones parallel, the others reductions.
        """
        of_results = dict.fromkeys(n for s in self.results for n in s.names(rank_of_rest))
        of_all = dict.fromkeys(n for s in self.arguments for n in s.names(rank_of_rest))
        return tuple({**of_results, **of_all}), len(of_results)

    def __str__(self) -> str:
        left, right = (", ".join(map(str, side)) for side in (self.arguments, self.results))
        return f"{left} -> {right}"


def _shapes(side: str, text: str) -> tuple[Shape, ...]:
    if not side.strip():
        return ()
    shapes = []
    for part in side.split(","):
        words = part.split()
        rest = words[:1] == [REST]
        sizes = words[1:] if rest else words
        wrong = [word for word in sizes if not _SIZE.fullmatch(word)]
        if wrong:
            raise ExportError(
                f"the shapes {text!r} have {wrong[0]!r}; sizes are names and numbers separated by "
                f"blanks, and {REST!r} may stand first"
            )
        shapes.append(Shape(tuple(sizes), rest))
    return tuple(shapes)
