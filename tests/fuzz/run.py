"""`make fuzz`: many mutations of every format, or of those that are named."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from .driver import fuzz
from .formats import FORMATS


def main() -> int:
    """Fuzz, print what was found, and return 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("formats", nargs="*", default=list(FORMATS), metavar="FORMAT")
    parser.add_argument("--count", type=int, default=10_000, help="mutations of each")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wrong = 0
    for name in args.formats:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="pelton-fuzz-") as folder:
            found = fuzz(name, args.count, Path(folder), seed=args.seed)
        listed = ", ".join(f"{count} {outcome}" for outcome, count in found.outcomes.items())
        print(f"{name}: {listed}, {len(found.wrong)} wrong ({time.monotonic() - started:.0f} s)")
        for number, what in found.wrong.items():
            print(f"  seed {args.seed}, mutation {number}: {what}")
        wrong += len(found.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
