"""Where the time of the suite's programs goes, by IREE's own profiler.

    python benchmarks/dispatches.py [--calls 100] [--most 5] [CASE ...]

Each program is compiled as by default and called on one thread (`local-sync`), while
`iree-benchmark-module` records what each dispatch takes. Dispatches of one kind and shape are added
up; a share is that of all dispatches, and what is left of a call is the runtime's.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from cuda_artifacts import exported
from suite import SUITE, Case

TOOLS = Path(sys.executable).parent
PREFIX = re.compile(r"^.*?dispatch_\d+_|^_encoding_\d+_")
MODES = "host-execution,executable-metadata"


def flags_for(inputs: list[torch.Tensor], folder: Path) -> list[str]:
    flags = []
    for number, tensor in enumerate(inputs):
        if tensor.dtype is torch.bool:
            flags.append(f"--input={'x'.join(map(str, tensor.shape))}xi8=1")
            continue
        np.save(folder / f"{number}.npy", tensor.numpy())
        flags.append(f"--input=@{folder / f'{number}.npy'}")
    return flags


def profile(case: Case, calls: int) -> tuple[float, Counter[str]]:
    """Return the microseconds of a call, and those of each kind of dispatch in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exported(case).compile(folder / "program.vmfb", cache_dir=None)
        recorded = folder / "calls.ireeprof"
        ran = subprocess.run(
            [
                TOOLS / "iree-benchmark-module", f"--module={folder / 'program.vmfb'}",
                "--function=main", "--device=local-sync", f"--benchmark_min_time={calls}x",
                "--benchmark_format=json", f"--device_profiling_mode={MODES}",
                f"--device_profiling_output={recorded}", *flags_for(case.tensors(), folder),
            ],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        listed = subprocess.run(
            [TOOLS / "iree-profile", "statistics", "--format=jsonl", recorded],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    (run,) = json.loads(ran.stdout[ran.stdout.index("{") :])["benchmarks"]
    microseconds = {"ns": 1e-3, "us": 1.0, "ms": 1e3}[run["time_unit"]] * run["real_time"]
    spent: Counter[str] = Counter()
    for line in listed.splitlines():
        row = json.loads(line)
        if row.get("row_type") == "host_execution_function":
            kind = PREFIX.sub("", row["function_name"])
            spent[kind] += row["tile_duration_sum_ns"] / 1e3 / run["iterations"]
    return microseconds, spent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(c.name for c in SUITE))
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--most", type=int, default=5, help="kinds of dispatches that are shown")
    options = parser.parse_args()
    console = Console(width=120)
    for case in SUITE:
        if case.name not in (options.cases or [case.name]):
            continue
        microseconds, spent = profile(case, options.calls)
        total = sum(spent.values())
        shown = Table("µs", "share", "dispatches", title=f"{case.name}: {microseconds:.0f} µs")
        for kind, taken in spent.most_common(options.most):
            shown.add_row(f"{taken:.0f}", f"{100 * taken / total:.0f} %", kind)
        rest = total - sum(taken for _, taken in spent.most_common(options.most))
        shown.add_row(f"{rest:.0f}", f"{100 * rest / total:.0f} %", f"{len(spent)} kinds in all")
        console.print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
