"""`docs/coverage.md`, made from the tables of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from . import results
from .isolation import Outcome
from .results import Table

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"

_HEADING = """\
# What exports, compiles and runs right

Made by `make coverage` from `tests/coverage/models.csv` and `tests/coverage/ops.csv`; do not edit.
Each case is exported, run and compared with eager torch. `static` and `dynamic`: compiled by IREE
for this processor at the default optimisation level, with fixed sizes, or with sizes that vary.
`onnx`: the static program by `to_onnx`, run by onnxruntime; one of bfloat16 as its float32 twin.
`engine`: the program of varying sizes is built as a TensorRT-RTX engine, and the package is called
on the reference device, which runs the engine's graph with onnxruntime.

`ok` means equal within tolerances fit for the element type; `refused` that an error names what is
missing, and the line of the program; `wrong` would be a fault of ours. In the `dynamic` cases of
models the batch (2 and more) and the length of texts vary, and the artifact is compared at three
sizes of each; of operators, every size that torch can leave open.

Models are those of `transformers` with small random configurations; operators are those of torch's
own database with its first three samples. `traced` counts the cases that `torch.export` itself
takes; `right` is the share of `ok` among them.
"""

_STATUSES = ("ok", "refused", "wrong", "failed", "crash", "timeout", "unmeasured")


def write_page(models: Table, operators: Table) -> None:
    """Write the page from the outcomes of both suites."""
    parts = [_HEADING]
    for title, table in (("Models", models), ("Operators", operators)):
        parts += [f"## {title}\n", _summary(table), "", _others(table), ""]
    PAGE.write_text("\n".join(parts).rstrip() + "\n")


def write_page_from_tables() -> None:
    """Write the page from the checked-in tables."""
    models, operators = (results.read(results.FOLDER / f"{name}.csv") for name in ("models", "ops"))
    write_page(models, operators)


def is_traced(outcome: Outcome) -> bool:
    """Whether torch.export itself took a case: what it refuses is not ours to lower."""
    refused = outcome.stage == "export" and outcome.reason.startswith(_REFUSED_BY_TORCH)
    return outcome.status != "unmeasured" and not refused


_REFUSED_BY_TORCH = (
    "ExportError: the program cannot be traced",
    "ExportError: Python's control flow or a size depends on the value of a tensor",
)


def _summary(table: Table) -> str:
    rows = []
    for dtype in dict.fromkeys(dtype for _, dtype in table):
        for variant in results.VARIANTS:
            found = [
                outcomes[variant]
                for (_, of), outcomes in table.items()
                if of == dtype and variant in outcomes
            ]
            if found:
                rows.append([f"{dtype} {variant}", *_counts(found)])
    return _table(["variant", "cases", *_STATUSES, "traced", "right"], rows)


def _counts(found: list[Outcome]) -> list[str]:
    counts = Counter(outcome.status for outcome in found)
    traced = sum(map(is_traced, found))
    right = f"{100 * counts['ok'] / traced:.1f} %" if traced else ""
    return [str(len(found)), *(str(counts[status]) for status in _STATUSES), str(traced), right]


def _others(table: Table) -> str:
    rows = [
        [f"`{name}`", f"{dtype} {variants}", status, reason]
        for (name, dtype), outcomes in table.items()
        for variants, status, reason in _grouped(outcomes)
    ]
    return _table(["case", "variant", "status", "reason"], rows)


def _grouped(outcomes: dict[str, Outcome]) -> Iterator[tuple[str, str, str]]:
    """Yield what is not right, variants of one reason together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for variant, outcome in outcomes.items():
        if outcome.status not in ("ok", "unmeasured"):
            groups.setdefault((outcome.status, _short(outcome)), []).append(variant)
    for (status, reason), variants in groups.items():
        yield ", ".join(variants), status, reason


def _short(outcome: Outcome) -> str:
    text = outcome.reason.split(" Reproducer:")[0].replace("|", "\\|")
    text = text.replace("`", "'").replace("<", "&lt;")
    return text if len(text) <= 120 else f"{text[:117]}..."


def _table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
