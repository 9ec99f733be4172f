"""Load a compiled module and call it: all that a program needs which deploys one. No PyTorch here.

    python samples/run_compiled.py m.vmfb m.irpa inputs.npz results.npz

calls the module once for each array in `inputs.npz`, writes the results under the same names, and
prints the median latency of each in milliseconds as JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from pelton import runtime


def median_ms(call: Callable[[], object], seconds: float) -> float:
    """Return the median latency of a call in milliseconds, from at least five calls."""
    call()
    times: list[float] = []
    while len(times) < 5 or sum(times) < seconds:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description="Call a compiled module.")
    parser.add_argument("module", help="a .vmfb")
    parser.add_argument("parameters", help="an .irpa")
    parser.add_argument("inputs", help="an .npz with one array for each call")
    parser.add_argument("results", help="the .npz to write")
    parser.add_argument("--seconds", type=float, default=1, help="time for each latency")
    args = parser.parse_args()
    exe = runtime.load(args.module, parameters=args.parameters)
    results, latencies_ms = {}, {}
    with np.load(args.inputs) as inputs:
        for name, given in inputs.items():
            results[name] = exe(given)
            latencies_ms[name] = median_ms(lambda given=given: exe(given), args.seconds)
    assert "torch" not in sys.modules
    np.savez(args.results, **results)
    print(json.dumps(latencies_ms))


if __name__ == "__main__":
    main()
