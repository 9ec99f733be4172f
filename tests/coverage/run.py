"""Measure what exports, compiles and runs right: `python -m tests.coverage.run models|ops|docs`.

Results are kept in `models.csv` and `ops.csv` beside this file; what has a result there is not run
again unless asked for, so that an interrupted run goes on where it stopped. All that cases share is
done before they fork, so that most cost less than a second of processor time in each variant.
"""

from __future__ import annotations

import argparse
import fnmatch
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from . import cases, results
from .isolation import Outcome, in_children
from .page import write_page_from_tables

TIMEOUT_S = 180.0
_SAVE_EVERY_S = 20.0


def main() -> None:
    """Run the suite that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=["models", "ops", "docs"])
    parser.add_argument("--only", default="*", help="names to run, with * and ?; by commas")
    parser.add_argument("--dtype", default="*", help="element types to run, with * and ?")
    parser.add_argument("--variant", default="*", help="variants to run, with * and ?")
    parser.add_argument("--redo", default="", help="run again what has one of these statuses")
    parser.add_argument("--all", action="store_true", help="run again what has a result")
    given = parser.parse_args()
    if given.suite != "docs":
        _measure(given)
    write_page_from_tables()


def _measure(given: argparse.Namespace) -> None:
    suite = {"models": cases.model_cases, "ops": cases.operator_cases}[given.suite]()
    path = results.FOLDER / f"{given.suite}.csv"
    known = results.read(path)
    redo = set(given.redo.split(","))
    cases.warm_up()
    fresh: results.Table = {}
    saved = time.monotonic()
    for line, case in suite.items():
        if not _matches(line[0], given.only) or not _matches(line[1], given.dtype):
            continue
        measured = known.get(line, {})
        wanted = [
            variant
            for variant in results.VARIANTS
            if _matches(variant, given.variant)
            and (given.all or variant not in measured or measured[variant].status in redo)
        ]
        if not wanted:
            continue
        started = time.monotonic()
        fresh[line] = in_children(case, wanted, TIMEOUT_S)
        _say("/".join(line), fresh[line], time.monotonic() - started)
        if time.monotonic() - saved > _SAVE_EVERY_S:
            _save(path, fresh, suite)
            saved = time.monotonic()
    known = _save(path, fresh, suite)
    print(dict(Counter(found.status for line in suite for found in known.get(line, {}).values())))


def _say(name: str, found: Mapping[str, Outcome], seconds: float) -> None:
    for variant, outcome in found.items():
        print(f"{name} {variant}: {outcome.status} {outcome.stage} {outcome.reason[:300]}")
    print(f"{name}: {seconds:.1f} s", flush=True)


def _save(path: Path, fresh: results.Table, order: Iterable[results.Line]) -> results.Table:
    """Add what was measured to the table, which another run may have changed meanwhile."""
    table = results.read(path)
    for line, outcomes in fresh.items():
        table[line] = table.get(line, {}) | outcomes
    results.write(path, table, order)
    return table


def _matches(name: str, patterns: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split(","))


if __name__ == "__main__":
    main()
