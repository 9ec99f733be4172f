"""What a call costs beyond the runtime's own: ours beside a raw `VmContext.invoke`.

Both call the same function of the same module in the same process, in alternating rounds, with
torch tensors by DLPack in and out. Prints the medians and their ratio; the bound of 1.5 is for
`local-task`, the default device. On `local-sync` a raw call does next to nothing, and the ratio
shows what our checks cost.
"""

from __future__ import annotations

import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import iree.runtime as iree
import torch
from rich.console import Console
from rich.table import Table

from pelton import aot, runtime

ROUNDS = 60
CALLS = 300


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def raw_caller(path: Path, device: str) -> Callable[..., torch.Tensor]:
    """Return a call of `main` with the least that Python can do."""
    instance = iree.VmInstance()
    hal = iree.get_device(device)
    module = iree.VmModule.mmap(instance, str(path))
    context = iree.VmContext(instance, [iree.create_hal_module(instance, hal), module])
    function = module.lookup_function("main")
    to_dlpack, from_dlpack = torch.utils.dlpack.to_dlpack, torch.utils.dlpack.from_dlpack

    def call(*tensors: torch.Tensor) -> torch.Tensor:
        arguments = iree.VmVariantList(len(tensors))
        for tensor in tensors:
            arguments.push_ref(hal.from_dlpack_capsule(to_dlpack(tensor)))
        results = iree.VmVariantList(1)
        context.invoke(function, arguments, results)
        view = results.get_as_object(0, iree.HalBufferView)
        return from_dlpack(hal.create_dlpack_capsule(view, 1, 0))

    return call


def seconds_per_call(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


def measure(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median microseconds of each call; rounds alternate, so noise falls on all."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        seconds_per_call(call)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(seconds_per_call(call))
    return {name: statistics.median(values) * 1e6 for name, values in times.items()}


def main() -> int:
    x, y = torch.ones(4), torch.ones(4)
    batch = torch.export.Dim("batch", min=1, max=64)
    cases = {
        "static sizes": None,
        "dynamic sizes": ({0: batch}, {0: batch}),
    }
    table = Table(title="a 4-element add, torch to torch (µs, median)")
    for heading in ("case", "device", "raw invoke", "pelton", "ratio"):
        table.add_column(heading, justify="left" if heading in ("case", "device") else "right")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for case, shapes in cases.items():
            path = Path(folder, "add.vmfb")
            aot.export(add, args=(x, y), dynamic_shapes=shapes).compile(path)
            for device in ("local-task", "local-sync"):
                callers = {
                    "raw": raw_caller(path, device),
                    "ours": runtime.load(path, device=device),
                }
                assert torch.equal(callers["ours"](x, y), callers["raw"](x, y))
                calls = {name: functools.partial(call, x, y) for name, call in callers.items()}
                found = measure(calls)
                ratio = found["ours"] / found["raw"]
                worst = max(worst, ratio) if device == "local-task" else worst
                table.add_row(
                    case, device, f"{found['raw']:.1f}", f"{found['ours']:.1f}", f"{ratio:.2f}"
                )
    Console().print(table)
    return 0 if worst <= 1.5 else 1


if __name__ == "__main__":
    sys.exit(main())
