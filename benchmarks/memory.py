"""How much memory the way from a model to a program takes beyond its weights.

    python benchmarks/memory.py [--megabytes 1024] [--layers 16] [--only STEP ...]

Each step runs in a process of its own that already has the model (and what the step before made),
so that the peak of its resident memory (`VmHWM`) less what was resident before is what the step
costs. The compiler runs in a child process; its peak counts as far as it is above that of the same
step with weights of 1 MB, which is what the compiler itself takes.

The steps with external parameters must stay under 10 % of the weights; the exit code tells.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from pelton import aot, runtime

BOUND = 0.10
"""The most extra memory of a step with external parameters, as a share of the weights."""

MODULE, PROGRAM, ARCHIVE = "model.mlirbc", "model.vmfb", "model.irpa"


class Tower(nn.Module):
    """Layers of equal size, so that the weights are many tensors of some megabytes."""

    def __init__(self, megabytes: int, layers: int) -> None:
        super().__init__()
        width = int(((megabytes << 20) / 4 / layers) ** 0.5)
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x

    @property
    def example(self) -> torch.Tensor:
        return torch.ones(1, self.layers[0].in_features)

    @property
    def nbytes(self) -> int:
        return sum(parameter.nbytes for parameter in self.parameters())


def export(model: Tower, external: bool) -> aot.ExportOutput:
    return aot.export(model, args=(model.example,), external_parameters=external or None)


@dataclass(frozen=True)
class Step:
    """One step: what it needs to be ready, and the work that is measured.

    Attributes:
        prepare: Makes what the work starts from; its memory is not counted.
        work: What is measured.
        external: Whether the parameters are outside the module.
    """

    prepare: Callable[[Tower, Path], object]
    work: Callable[[object, Tower, Path], object]
    external: bool = True


def _warm_up(model: Tower, folder: Path) -> None:
    """Have all libraries loaded that an export needs."""
    small = Tower(1, 2)
    out = export(small, True)
    out.save_mlir(folder / "small.mlirbc")
    out.save_parameters(folder / "small.irpa")


def _exported(external: bool) -> Callable[[Tower, Path], aot.ExportOutput]:
    def prepare(model: Tower, folder: Path) -> aot.ExportOutput:
        _warm_up(model, folder)
        return export(model, external)

    return prepare


def _load(_: object, model: Tower, folder: Path) -> runtime.Executable:
    return runtime.load(folder / PROGRAM, parameters=folder / ARCHIVE)


STEPS = {
    "export": Step(_warm_up, lambda _, model, __: export(model, True)),
    "save_mlir": Step(_exported(True), lambda out, _, folder: out.save_mlir(folder / MODULE)),
    "save_parameters": Step(
        _exported(True), lambda out, _, folder: out.save_parameters(folder / ARCHIVE)
    ),
    "compile": Step(_exported(True), lambda out, _, folder: out.compile(folder / PROGRAM)),
    "load": Step(lambda model, folder: None, _load),
    "export, inline": Step(_warm_up, lambda _, model, __: export(model, False), external=False),
    "save_mlir, inline": Step(
        _exported(False), lambda out, _, folder: out.save_mlir(folder / "inline.mlirbc"), False
    ),
    "compile, inline": Step(
        _exported(False), lambda out, _, folder: out.compile(folder / "inline.vmfb"), False
    ),
}
"""The steps by name, in an order in which each finds the files that it needs."""


def _status(field: str, process: str = "self") -> int:
    """Return a size that the kernel keeps of a process, in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:")), 0)


class ChildWatch:
    """Follows the peak of the memory of child processes while a block runs."""

    def __init__(self) -> None:
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> ChildWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            for listing in Path("/proc/self/task").glob("*/children"):
                try:
                    children = listing.read_text().split()
                except OSError:
                    continue
                for child in children:
                    if _is_compiler(child):
                        self.peak = max(self.peak, _status("VmHWM", child))


def _is_compiler(process: str) -> bool:
    """Tell whether a child is the compiler by now, and not yet this program or a small tool."""
    try:
        return Path(f"/proc/{process}/comm").read_text() == "iree-compile\n"
    except OSError:
        return False


def _measure(name: str, megabytes: int, layers: int, folder: Path) -> dict[str, int]:
    """Do a step in this process and return its sizes."""
    step = STEPS[name]
    model = Tower(megabytes, layers).eval()
    prepared = step.prepare(model, folder)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts at what is resident now
    before = _status("VmRSS")
    with ChildWatch() as children:
        made = step.work(prepared, model, folder)
    sizes = {"peak": _status("VmHWM") - before, "kept": _status("VmRSS") - before}
    del made  # it counts as kept
    return {"weights": model.nbytes, "compiler": children.peak, **sizes}


def _measured_in_child(name: str, megabytes: int, layers: int, folder: Path) -> dict[str, int]:
    command = [sys.executable, __file__, "--child", name, "--folder", str(folder)]
    sizes = ["--megabytes", str(megabytes), "--layers", str(layers)]
    done = subprocess.run([*command, *sizes], check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def _report(names: list[str], megabytes: int, layers: int) -> bool:
    """Print the table; return whether all steps that have a bound are within it."""
    table = Table(title=f"Memory beyond {megabytes} MB of weights")
    for column in ("step", "peak", "kept", "compiler", "extra / weights", ""):
        table.add_column(column, justify="left" if column == "step" else "right")
    within = True
    with tempfile.TemporaryDirectory() as large, tempfile.TemporaryDirectory() as small:
        for name in names:
            found = _measured_in_child(name, megabytes, layers, Path(large))
            base = _measured_in_child(name, 1, layers, Path(small))
            compiler = found["compiler"] - base["compiler"]
            ratio = max(found["peak"], compiler) / found["weights"]
            verdict = ("ok" if ratio < BOUND else "over") if STEPS[name].external else ""
            within = within and verdict != "over"
            own = f"{found['compiler'] >> 20} MB ({compiler / 2**20:+.0f})"
            sizes = f"{found['peak'] >> 20} MB", f"{found['kept'] >> 20} MB"
            table.add_row(name, *sizes, own if found["compiler"] else "", f"{ratio:.3f}", verdict)
    Console().print(table)
    return within


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--only", nargs="+", choices=list(STEPS), default=list(STEPS))
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--child", choices=list(STEPS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(_measure(args.child, args.megabytes, args.layers, args.folder)))
        return 0
    return 0 if _report(args.only, args.megabytes, args.layers) else 1


if __name__ == "__main__":
    sys.exit(main())
