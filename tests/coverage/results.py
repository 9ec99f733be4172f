"""The checked-in tables: one line for each case, in order, with its outcome."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from .isolation import Outcome

FOLDER = Path(__file__).parent

Key = tuple[str, str]
"""Name of the operator or model, and the variant: element type and `static` or `dynamic`."""

_HEADER = ("name", "variant", "status", "stage", "reason")


def read(path: Path) -> dict[Key, Outcome]:
    """Return the outcomes that a table holds; none if there is no table."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (row["name"], row["variant"]): Outcome(row["status"], row["stage"], row["reason"])
            for row in csv.DictReader(file)
        }


def write(path: Path, outcomes: Mapping[Key, Outcome], order: Iterable[Key]) -> None:
    """Write a table with the cases in the given order; cases that are no more are dropped."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    for key in order:
        if key in outcomes:
            outcome = outcomes[key]
            writer.writerow((*key, outcome.status, outcome.stage, outcome.reason))
    path.write_text(text.getvalue())
