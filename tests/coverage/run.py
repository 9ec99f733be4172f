"""Measure what exports, compiles and runs right: `python -m tests.coverage.run models|ops|docs`.

Results are kept in `models.csv` and `ops.csv` beside this file; a case that has a line there is not
run again unless asked for, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import fnmatch
import time
from collections import Counter

from . import cases, results
from .isolation import in_child
from .page import write_page_from_tables

TIMEOUT_S = 180.0
_SAVE_EVERY_S = 20.0


def main() -> None:
    """Run the suite that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=["models", "ops", "docs"])
    parser.add_argument("--only", default="*", help="names of the cases to run, with * and ?")
    parser.add_argument("--variant", default="*", help="variants to run, with * and ?")
    parser.add_argument("--redo", default="", help="run again what has one of these statuses")
    parser.add_argument("--all", action="store_true", help="run again what has a result")
    given = parser.parse_args()
    if given.suite == "docs":
        write_page_from_tables()
        return
    suite = {"models": cases.model_cases, "ops": cases.operator_cases}[given.suite]()
    path = results.FOLDER / f"{given.suite}.csv"
    known = results.read(path)
    redo = set(given.redo.split(","))
    saved = time.monotonic()
    for key, case in suite.items():
        if not (fnmatch.fnmatch(key[0], given.only) and fnmatch.fnmatch(key[1], given.variant)):
            continue
        if key in known and known[key].status not in redo and not given.all:
            continue
        started = time.monotonic()
        known[key] = outcome = in_child(case, TIMEOUT_S)
        seconds = time.monotonic() - started
        line = f"{'/'.join(key)}: {outcome.status} {outcome.stage} {outcome.reason[:200]}"
        print(f"{line} {seconds:.1f}s", flush=True)
        if time.monotonic() - saved > _SAVE_EVERY_S:
            results.write(path, known, suite)
            saved = time.monotonic()
    results.write(path, known, suite)
    write_page_from_tables()
    print(dict(Counter(known[key].status for key in suite if key in known)))


if __name__ == "__main__":
    main()
