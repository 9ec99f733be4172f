"""What a verification found: every comparison, and a table of the largest differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..spec.errors import PeltonError, SourceLocation
from .difference import Difference
from .sizes import SizeCase
from .values import InputPattern


@dataclass(frozen=True)
class Comparison:
    """One result of one call, or one piece of state after it.

    Attributes:
        function: The entry point.
        sizes: The dynamic sizes of the call.
        filling: How the inputs were filled.
        result: Path of the result such as `result['y']`, or `state` and the name of it.
        difference: How far it is from the reference.
    """

    function: str
    sizes: SizeCase
    filling: InputPattern
    result: str
    difference: Difference

    @property
    def passed(self) -> bool:
        """Whether it is near enough."""
        return not self.difference.problem

    def __str__(self) -> str:
        return (
            f"{self.function}() at {self.sizes}, inputs {self.filling}: {self.result} "
            f"{self.difference.problem or 'agrees'} (largest difference "
            f"{self.difference.absolute:.3g}, relative {self.difference.relative:.3g})"
        )


@dataclass(frozen=True)
class FirstDifference:
    """The first operator whose value differs.

    Attributes:
        operator: Its name, such as `aten.tanh.default`.
        location: The user's line, if known.
        difference: How far its value is off.
        stage: What makes it so: `export` or `compile`.
        reproducer: A script that shows it alone; None: alone it is right.
    """

    operator: str
    location: SourceLocation | None
    difference: Difference
    stage: str
    reproducer: Path | None = None

    def __str__(self) -> str:
        place = f" (at {self.location})" if self.location else ""
        shown = f"reproducer: {self.reproducer}" if self.reproducer else "alone it is right"
        return (
            f"the first operator that differs is {self.operator}{place}, by "
            f"{self.difference.absolute:.3g} (relative {self.difference.relative:.3g}), "
            f"after the {self.stage}; {shown}"
        )


@dataclass(frozen=True)
class Report:
    """What a verification found.

    Attributes:
        artifact: What was run.
        reference: What it was compared with.
        comparisons: All of them.
        notes: Ranges of integers, and what was left out.
        first_difference: Where a failure comes from, if that was asked for and found.
    """

    artifact: str = ""
    reference: str = ""
    comparisons: Sequence[Comparison] = ()
    notes: Sequence[str] = ()
    first_difference: FirstDifference | None = None

    @property
    def passed(self) -> bool:
        """Whether all results are near enough to the reference."""
        return all(comparison.passed for comparison in self.comparisons)

    @property
    def worst(self) -> Comparison | None:
        """The comparison that is farthest off; failures come first."""
        return max(
            self.comparisons,
            key=lambda c: (not c.passed, c.difference.relative, c.difference.absolute),
            default=None,
        )

    def check(self) -> Report:
        """Return the report where all is right.

        Raises:
            NumericsError: Something is not; has the report.
        """
        worst = self.worst
        if self.passed or worst is None:
            return self
        failed = sum(not comparison.passed for comparison in self.comparisons)
        found = f"; {self.first_difference}" if self.first_difference else ""
        raise NumericsError(
            f"{self.artifact} differs from {self.reference} in {failed} of "
            f"{len(self.comparisons)} comparisons, most of all {worst}{found}",
            self,
        )

    def __str__(self) -> str:
        verdict = "agrees" if self.passed else "DIFFERS"
        head = f"{self.artifact} against {self.reference}: {verdict}, "
        head += f"{len(self.comparisons)} comparisons"
        lines = [head, *_table(self.comparisons), *(f"note: {note}" for note in self.notes)]
        return "\n".join([*lines, str(self.first_difference)] if self.first_difference else lines)


_HEADINGS = ("function", "sizes", "result", "absolute", "relative", "inputs", "")


def _table(comparisons: Iterable[Comparison]) -> list[str]:
    """Return a row for each result at each size: the call where it is farthest off."""
    worst: dict[tuple[str, str, str], Comparison] = {}
    for found in comparisons:
        key = (found.function, str(found.sizes), found.result)
        known = worst.get(key)
        if known is None or _badness(found) > _badness(known):
            worst[key] = found
    rows = [_HEADINGS, *map(_row, worst.values())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    if len(rows) == 1:
        return []
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _badness(found: Comparison) -> tuple[bool, float, float]:
    return (not found.passed, found.difference.relative, found.difference.absolute)


def _row(found: Comparison) -> tuple[str, ...]:
    apart = found.difference
    verdict = apart.problem or "ok"
    numbers = (f"{apart.absolute:.3g}", f"{apart.relative:.3g}")
    return (found.function, str(found.sizes), found.result, *numbers, str(found.filling), verdict)


class NumericsError(PeltonError, ArithmeticError):
    """A compiled artifact computes something else than the program that it was made from.

    Args:
        message: What differs most, and where.
        report: All that was compared.
    """

    def __init__(
        self, message: str, report: Report, *, location: SourceLocation | None = None
    ) -> None:
        super().__init__(message, location=location)
        self.report = report
