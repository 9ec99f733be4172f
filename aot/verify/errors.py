"""What a verification raises when an artifact computes something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import PeltonError, SourceLocation

if TYPE_CHECKING:
    from .report import Report


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
