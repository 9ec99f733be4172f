"""The speed of the suite on this processor, beside eager, inductor and onnxruntime.

    python benchmarks/speed.py [--seconds 5] [--threads 2] [--json FILE] [--plot DIR] [CASE ...]

The ways of a program run in turns, each in a process of its own (docs/bench.md). `cpu-tuned` is
the variant that `pelton tune` finds first. The last rows are geometric means over the programs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pelton.aot.bench import Report, Settings, measure, save_figure

sys.path.insert(0, str(Path(__file__).parent))
from suite import SUITE, Case

WAYS = ("eager", "inductor", "cpu", "cpu-tuned", "onnxruntime")
WORKER = [sys.executable, "-m", "pelton.cli.bench_worker"]
GOALS = {("cpu", "inductor"): 1.0, ("cpu", "eager"): 0.95, ("cpu-tuned", "inductor"): 0.9}
"""The largest geometric mean of the ratio of one way's median to another's."""

SLOWEST = 1.25
"""The largest ratio to eager of any program, for the default."""


def ratio(report: Report, way: str, other: str) -> float | None:
    found = {row.runner: row.percentile(50) for row in report.measured}
    return found[way] / found[other] if way in found and other in found else None


def mean(reports: Sequence[Report], way: str, other: str) -> float | None:
    """Return the geometric mean of a way's ratios to another; None where one is missing."""
    ratios = [ratio(report, way, other) for report in reports]
    known = [value for value in ratios if value is not None]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def measured(case: Case, settings: Settings, ways: Sequence[str]) -> Report:
    os.chdir(Path(__file__).parent)  # where the processes find the suite
    return measure(WORKER, case.program, case.inputs, ways, settings)


def table(reports: Sequence[Report], ways: Sequence[str]) -> Table:
    shown = Table("program", *(f"{way}, ms" for way in ways), "of eager", "of inductor")
    for report in reports:
        rows = {row.runner: row for row in report.rows}
        times = [
            f"{rows[way].percentile(50):.2f}{'' if rows[way].is_right else ' wrong'}"
            if rows[way] in report.measured
            else rows[way].status
            for way in ways
        ]
        ratios = [ratio(report, "cpu", other) for other in ("eager", "inductor")]
        told = (f"{value:.2f}" if value else "" for value in ratios)
        shown.add_row(report.program.partition(":")[2], *times, *told)
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(c.name for c in SUITE))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seconds", type=float, default=5.0, help="for each way of each program")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="a picture of each program")
    options = parser.parse_args()
    ways = options.ways.split(",")
    console = Console(width=160)
    saved = options.json.resolve() if options.json else None
    pictures = options.plot.resolve() if options.plot else None
    reports: list[Report] = []
    for case in SUITE:
        if case.name in (options.cases or [case.name]):
            console.print(f"{case.name} …")
            settings = Settings(options.seconds, options.threads)
            reports.append(measured(case, settings, ways))
            if saved:
                saved.write_text(json.dumps([json.loads(r.to_json()) for r in reports]))
            if pictures:
                pictures.mkdir(parents=True, exist_ok=True)
                save_figure(reports[-1], pictures / f"{case.name}.png")
    console.print(table(reports, ways))
    for (way, other), goal in GOALS.items():
        found = mean(reports, way, other)
        if found is not None:
            console.print(f"{way} / {other}: {found:.2f}, goal {goal}")
    slow = [r.program for r in reports if (ratio(r, "cpu", "eager") or 0) > SLOWEST]
    console.print(f"slower than {SLOWEST} x eager: {', '.join(slow) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
