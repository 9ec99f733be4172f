"""Affine forms of traced integers: linear combinations whose differences are known at trace."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Affine:
    """A linear combination of unknown integers, plus a constant.

    Attributes:
        terms: The coefficient of each unknown; never 0.
        offset: The constant.

    Example:
        >>> start = Affine.of("start")
        >>> stop = start + Affine.of("count") + Affine.number(2)
        >>> (stop - start).terms, (stop - start).offset
        ({'count': 1}, 2)
    """

    terms: Mapping[Any, int] = field(default_factory=dict)
    offset: int = 0

    @staticmethod
    def of(unknown: Hashable) -> Affine:
        """Return the affine form of one unknown integer."""
        return Affine({unknown: 1})

    @staticmethod
    def number(value: int) -> Affine:
        """Return the affine form of a constant."""
        return Affine({}, value)

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for unknown, count in other.terms.items():
            terms[unknown] = terms.get(unknown, 0) + count
        nonzero = {unknown: count for unknown, count in terms.items() if count}
        return Affine(nonzero, self.offset + other.offset)

    def __sub__(self, other: Affine) -> Affine:
        negated = {unknown: -count for unknown, count in other.terms.items()}
        return self + Affine(negated, -other.offset)

    @property
    def constant(self) -> int | None:
        """The constant, if there are no unknowns; else None."""
        return None if self.terms else self.offset

    @property
    def unknown(self) -> Any | None:
        """The unknown, if the form is exactly one unknown; else None."""
        single = len(self.terms) == 1 and set(self.terms.values()) == {1} and not self.offset
        return next(iter(self.terms)) if single else None
