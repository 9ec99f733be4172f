"""`docs/coverage.md`, made from the tables of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from . import results
from .isolation import Outcome
from .results import Key

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"

_HEADING = """\
# What exports, compiles and runs right

Made by `make coverage` from `tests/coverage/models.csv` and `tests/coverage/ops.csv`; do not edit.
Each case is exported, compiled with IREE for this processor, loaded, called, and compared with
eager torch. `ok` means equal within tolerances fit for the element type; `refused` that an error
names what is missing, and the line of the program; `wrong` would be a fault of ours. `static` cases
have fixed sizes. In `dynamic` cases of models the batch (2 and more) and the length of texts vary,
and the artifact is compared at three sizes of each; of operators, every size that torch can leave
open.

Models are those of `transformers` with small random configurations; operators are those of torch's
own database with its first three samples.
"""

_STATUSES = ("ok", "refused", "wrong", "failed", "crash", "timeout", "unmeasured")


def write_page(models: Mapping[Key, Outcome], operators: Mapping[Key, Outcome]) -> None:
    """Write the page from the outcomes of both suites."""
    parts = [_HEADING]
    for title, outcomes in (("Models", models), ("Operators", operators)):
        parts += [f"## {title}\n", _summary(outcomes), "", _others(outcomes), ""]
    PAGE.write_text("\n".join(parts).rstrip() + "\n")


def write_page_from_tables() -> None:
    """Write the page from the checked-in tables."""
    tables = [results.read(results.FOLDER / f"{name}.csv") for name in ("models", "ops")]
    write_page(*tables)


def _summary(outcomes: Mapping[Key, Outcome]) -> str:
    counts: dict[str, Counter[str]] = {}
    for (_, variant), outcome in outcomes.items():
        counts.setdefault(variant, Counter())[outcome.status] += 1
    rows = [
        [variant, str(found.total()), *(str(found[status]) for status in _STATUSES)]
        for variant, found in counts.items()
    ]
    return _table(["variant", "cases", *_STATUSES], rows)


def _others(outcomes: Mapping[Key, Outcome]) -> str:
    rows = [
        [f"`{name}`", variant, outcome.status, _short(outcome)]
        for (name, variant), outcome in outcomes.items()
        if outcome.status not in ("ok", "unmeasured")
    ]
    return _table(["case", "variant", "status", "reason"], rows)


def _short(outcome: Outcome) -> str:
    text = outcome.reason.split(" Reproducer:")[0].replace("|", "\\|")
    text = text.replace("`", "'").replace("<", "&lt;")
    return text if len(text) <= 160 else f"{text[:157]}..."


def _table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
