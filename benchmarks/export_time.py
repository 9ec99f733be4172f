"""How long an export takes: ours beside `torch.export.export` alone, and iree-turbine's.

A GPT of 12 layers and 124 million parameters, weights external, in alternating rounds of one
process; the bound is 1.25 times non-strict torch.export alone, in CPU seconds. iree-turbine 3.9.0
is measured in a virtual environment of its own when its Python is given:

    python benchmarks/export_time.py --turbine /path/to/venv/bin/python
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from models import GPT, parameter_count

ROUNDS = 5

TURBINE = """
import json, sys, time, torch, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from models import GPT
import iree.turbine.aot as aot
model, tokens = GPT().eval(), torch.zeros(1, 64, dtype=torch.int64)
aot.externalize_module_parameters(model)
times = {}
for strict in (True, False):
    start = time.process_time()
    aot.export(model, args=(tokens,), strict_export=strict)
    times["strict" if strict else "non-strict"] = time.process_time() - start
print(json.dumps(times))
"""


def cpu_seconds(action: Callable[[], Any]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turbine", help="the Python of an environment with iree-turbine 3.9.0")
    options = parser.parse_args()
    from pelton import aot

    model, tokens = GPT().eval(), torch.zeros(1, 64, dtype=torch.int64)
    actions: dict[str, Callable[[], Any]] = {
        "torch.export (non-strict)": lambda: torch.export.export(model, (tokens,), strict=False),
        "pelton": lambda: aot.export(model, args=(tokens,), external_parameters=True),
    }
    times: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        action()
    for _ in range(ROUNDS):
        for name, action in actions.items():
            times[name].append(cpu_seconds(action))
    medians = {name: statistics.median(values) for name, values in times.items()}
    if options.turbine:
        done = subprocess.run(
            [options.turbine, "-c", TURBINE, str(Path(__file__).parent)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        for mode, seconds in json.loads(done.stdout.splitlines()[-1]).items():
            medians[f"iree-turbine ({mode})"] = seconds
    base = medians["torch.export (non-strict)"]
    table = Table(title=f"exporting a GPT of {parameter_count(model) / 1e6:.0f} M parameters")
    table.add_column("tool")
    table.add_column("CPU seconds", justify="right")
    table.add_column("ratio", justify="right")
    for name, seconds in medians.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / base:.2f}")
    Console().print(table)
    return 0 if medians["pelton"] <= 1.25 * base else 1


if __name__ == "__main__":
    sys.exit(main())
