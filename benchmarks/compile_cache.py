"""What the compile cache saves: a GPT of 124 million parameters, all of them in the program.

    python benchmarks/compile_cache.py [--layers 12] [--rounds 5] [--length 64] [--dynamic]

Each round exports the model anew, as a new process would, so that the weights are hashed again.
The first compile makes the artifact; the bound is that another costs less than 5 % of it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from pelton import aot
from pelton.aot.ir.digest import Resources, module_digest

sys.path.insert(0, str(Path(__file__).parent))
from models import GPT, parameter_count

BOUND = 0.05
FIRST = "first compile, stored"
SECOND = "second compile, exported anew"


@dataclass
class Taken:
    """Seconds on the clock, and of processors; the latter do not depend on who else works here."""

    clock: float
    processor: float


def timed(action: Callable[[], object]) -> Taken:
    clock, processor = time.perf_counter(), sum(os.times()[:4])  # with child processes
    action()
    return Taken(time.perf_counter() - clock, sum(os.times()[:4]) - processor)


def median(times: list[Taken]) -> Taken:
    return Taken(
        statistics.median(taken.clock for taken in times),
        statistics.median(taken.processor for taken in times),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--length", type=int, default=64, help="tokens; the optimum if --dynamic")
    parser.add_argument("--dynamic", action="store_true", help="any length up to 1024")
    parser.add_argument("--folder", help="where to write; default: the system's temporary folder")
    options = parser.parse_args()
    model = GPT(layers=options.layers).eval()
    length = aot.NamedDimension("length", 1, options.length, 1024)
    size = length if options.dynamic else options.length
    tokens = aot.InputInfo((1, size), torch.int64)

    steps: dict[str, list[Taken]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a level that IREE had to give up: said by the compiler
        path, other, cache = Path(name, "a.vmfb"), Path(name, "b.vmfb"), Path(name, "cache")
        exports: list[aot.ExportOutput] = []

        def measure(step: str, action: Callable[[], object]) -> None:
            steps.setdefault(step, []).append(timed(action))

        def export() -> None:
            exports[:] = [aot.export(model, args=[tokens])]

        def compile_to(path: Path) -> None:
            exports[0].compile(path, cache_dir=cache)

        def key() -> None:
            out = exports[0]
            module_digest(out.mlir_module, Resources(out.exported.resources.data))

        measure("export", export)
        measure(FIRST, lambda: compile_to(path))
        made = path.read_bytes()
        for _ in range(options.rounds):
            measure("export", export)
            measure(SECOND, lambda: compile_to(path))
            measure("  of which the key", key)
            measure("another of the same export", lambda: compile_to(path))
            measure("another to another file, copied", lambda: compile_to(other))
            if path.read_bytes() != made or other.read_bytes() != made:
                raise SystemExit("the artifact from the cache differs from the compiled one")

    first, second = median(steps[FIRST]), median(steps[SECOND])
    table = Table("step", "seconds", "%", "CPU seconds", "%")
    for step, times in steps.items():
        taken = median(times)
        table.add_row(
            step,
            f"{taken.clock:.2f}",
            f"{100 * taken.clock / first.clock:.1f}",
            f"{taken.processor:.2f}",
            f"{100 * taken.processor / first.processor:.1f}",
        )
    megabytes = len(made) / 1e6
    Console().print(f"{parameter_count(model) / 1e6:.0f} M parameters, artifact {megabytes:.0f} MB")
    Console().print(table)
    return 0 if second.processor < BOUND * first.processor else 1


if __name__ == "__main__":
    sys.exit(main())
