"""The checked-in tables: one line for each name and element type, a column for each variant."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from .isolation import Outcome

FOLDER = Path(__file__).parent

VARIANTS = ("static", "onnx", "dynamic", "engine")
"""What is measured of each line: IREE with fixed sizes, the same program by ONNX, IREE with sizes
that vary, and those as a TensorRT-RTX engine, whose graph onnxruntime runs."""

Line = tuple[str, str]
"""Name of the operator or model, and the element type."""

Table = dict[Line, dict[str, Outcome]]
"""The outcomes by line and variant."""

_LONGEST_REASON = 200


def read(path: Path) -> Table:
    """Return the outcomes that a table holds; none if there is no table."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (row["name"], row["dtype"]): {
                variant: _outcome_of(row[variant]) for variant in VARIANTS if row.get(variant)
            }
            for row in csv.DictReader(file)
        }


def write(path: Path, table: Mapping[Line, Mapping[str, Outcome]], order: Iterable[Line]) -> None:
    """Write a table with its lines in the given order; lines that are no more are dropped."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("name", "dtype", *VARIANTS))
    for line in order:
        if line in table:
            writer.writerow((*line, *(_cell_of(table[line].get(name)) for name in VARIANTS)))
    draft = path.with_suffix(".tmp")
    draft.write_text(text.getvalue())
    draft.replace(path)


def _cell_of(outcome: Outcome | None) -> str:
    """Return an outcome as text: its status, then where it ended and why."""
    if outcome is None:
        return ""
    where = f" at {outcome.stage}" if outcome.stage else ""
    why = f": {outcome.reason[:_LONGEST_REASON]}" if outcome.reason else ""
    return f"{outcome.status}{where}{why}"


def _outcome_of(cell: str) -> Outcome:
    head, _, reason = cell.partition(": ")
    status, _, stage = head.partition(" at ")
    return Outcome(status, stage, reason)
