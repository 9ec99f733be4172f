"""Two small networks from PyTorch to compiled code, run in a process that has no PyTorch.

A convolutional classifier and a transformer (both with random weights) are exported with a dynamic
batch, saved, and compiled for this machine's processor. `run_compiled.py`, a new process, then
loads the files and calls them at three batch sizes. What it computes is compared with eager
PyTorch; the latencies of both go into a table and a plot.

    python samples/image_and_text.py --out out
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table
from run_compiled import median_ms
from torch import nn

from pelton import aot

BATCHES = (1, 4, 8)
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}

console = Console()


class Residual(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        stride = 1 if channels_in == channels else 2
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.shortcut = nn.Sequential(
            nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class Classifier(nn.Module):
    """A residual network: image [batch, 3, height, width] to scores [batch, classes]."""

    def __init__(self, widths: Sequence[int], classes: int = 100) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 7, 2, 3, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        pairs = zip((widths[0], *widths), widths, strict=False)
        self.blocks = nn.Sequential(*(Residual(before, width) for before, width in pairs))
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(image)).mean((2, 3)))


class Attention(nn.Module):
    """Causal attention of several heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.project(x).chunk(3, dim=-1)
        )
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.join(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a feed-forward network, each on normalised input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(width), Attention(width, heads))
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(x)
        return x + self.feed(x)


class Transformer(nn.Module):
    """A language model: tokens [batch, length] to scores [batch, length, vocabulary]."""

    def __init__(self, width: int, layers: int, length: int, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(length, width))
        self.blocks = nn.Sequential(*(Block(width, heads=4) for _ in range(layers)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.tokens(tokens) + self.positions[: tokens.shape[1]]))


@dataclass
class Case:
    """A network and what it is called with.

    Attributes:
        name: Stem of the names of its files.
        model: The network in eval mode.
        size: The shape of an input, without the batch.
        inputs: Gives random inputs of a batch size.
    """

    name: str
    model: nn.Module
    size: tuple[int, ...]
    inputs: Callable[[int], torch.Tensor]


@dataclass
class Measured:
    """One row of the table; latencies are medians in milliseconds."""

    name: str
    batch: int
    eager_ms: float
    compiled_ms: float
    difference: float
    equal: bool


def make_cases(small: bool) -> list[Case]:
    """Return the networks, in sizes for a test where `small`."""
    torch.manual_seed(0)
    pixels, widths = (64, (8, 16)) if small else (128, (32, 64, 128, 256))
    classifier = Classifier(widths)
    with torch.no_grad():
        for _ in range(5):  # gives batch normalisation statistics of its own
            classifier(torch.randn(4, 3, pixels, pixels))
    length, vocabulary = (16, 64) if small else (64, 4096)
    width, layers = (32, 1) if small else (256, 4)
    transformer = Transformer(width, layers, length, vocabulary)
    image = (3, pixels, pixels)
    return [
        Case("classifier", classifier.eval(), image, lambda batch: torch.randn(batch, *image)),
        Case(
            "transformer",
            transformer.eval(),
            (length,),
            lambda batch: torch.randint(vocabulary, (batch, length)),
        ),
    ]


def build(case: Case, folder: Path) -> None:
    """Export and compile a network to files in `folder`."""
    batch = aot.NamedDimension("batch", min=1, opt=4, max=16)
    dtype = case.inputs(1).dtype
    start = time.perf_counter()
    out = aot.export(
        case.model, args=[aot.InputInfo((batch, *case.size), dtype)], external_parameters=True
    )
    exported = time.perf_counter()
    files = [folder / f"{case.name}{suffix}" for suffix in (".mlirbc", ".irpa", ".vmfb")]
    out.save_mlir(files[0])
    out.save_parameters(files[1])
    saved = time.perf_counter()
    with warnings.catch_warnings(record=True) as notes:
        out.compile(files[2])
    compiled = time.perf_counter()
    signature = escape(str(out.signatures["main"]))
    console.print(f"[bold]{case.name}[/] {signature}", soft_wrap=True)
    console.print(
        f"  exported in {exported - start:.1f} s, saved in {saved - exported:.1f} s, "
        f"compiled in {compiled - saved:.1f} s: "
        + ", ".join(f"{file.name} {decimal(file.stat().st_size)}" for file in files),
        soft_wrap=True,
    )
    for note in notes:
        console.print(f"  note: {note.message}", style="dim", markup=False, soft_wrap=True)


def run_eager(case: Case, inputs: dict[int, torch.Tensor], seconds: float) -> dict[int, Any]:
    """Return results and median latency in milliseconds by batch size."""
    found = {}
    with torch.inference_mode():
        for batch, given in inputs.items():
            latency_ms = median_ms(lambda given=given: case.model(given), seconds)
            found[batch] = (case.model(given).numpy(), latency_ms)
    return found


def run_compiled(
    case: Case, inputs: dict[int, torch.Tensor], seconds: float, folder: Path
) -> dict[int, Any]:
    """Return the same as `run_eager`, from the files in `folder`, in a new process."""
    given, results = folder / f"{case.name}.inputs.npz", folder / f"{case.name}.results.npz"
    np.savez(given, **{str(batch): tensor.numpy() for batch, tensor in inputs.items()})
    script = Path(__file__).with_name("run_compiled.py")
    files = [folder / f"{case.name}.vmfb", folder / f"{case.name}.irpa", given, results]
    done = subprocess.run(
        [sys.executable, script, *files, "--seconds", str(seconds)], stdout=subprocess.PIPE
    )
    if done.returncode:
        raise SystemExit(f"{script.name} failed on {case.name}")
    latencies = json.loads(done.stdout)
    with np.load(results) as arrays:
        return {batch: (arrays[str(batch)], latencies[str(batch)]) for batch in inputs}


def measure(case: Case, seconds: float, folder: Path) -> list[Measured]:
    """Run a network both ways and compare."""
    inputs = {batch: case.inputs(batch) for batch in BATCHES}
    eager = run_eager(case, inputs, seconds)
    compiled = run_compiled(case, inputs, seconds, folder)
    rows = []
    for batch in BATCHES:
        (expected, eager_ms), (result, compiled_ms) = eager[batch], compiled[batch]
        difference = float(np.abs(result - expected).max())
        equal = np.allclose(result, expected, **TOLERANCE)
        rows.append(Measured(case.name, batch, eager_ms, compiled_ms, difference, equal))
    return rows


def warn_of_load() -> None:
    """Say so if the machine has other work, which makes latencies of either side meaningless."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores / 2:
        console.print(
            f"This machine is busy (load {load:.1f} on {cores} cores): do not trust the latencies.",
            style="yellow",
        )


def print_table(rows: Sequence[Measured]) -> None:
    """Print what was measured."""
    threads = torch.get_num_threads()
    table = Table(title=f"median latency on this machine's processor, {threads} threads")
    table.add_column("model")
    for heading in ("batch", "eager, ms", "compiled, ms", "speed-up", "largest difference"):
        table.add_column(heading, justify="right")
    previous = None
    for row in rows:
        if previous not in (None, row.name):
            table.add_section()
        table.add_row(
            "" if previous == row.name else row.name,
            str(row.batch),
            f"{row.eager_ms:.2f}",
            f"{row.compiled_ms:.2f}",
            f"{row.eager_ms / row.compiled_ms:.2f}x",
            f"[{'green' if row.equal else 'red'}]{row.difference:.1e}[/]",
        )
        previous = row.name
    console.print(table)


def plot(rows: Sequence[Measured], path: Path) -> None:
    """Draw the latencies as bars, one panel for each network."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(row.name for row in rows))
    with pyplot.rc_context({"font.size": 15, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (panels,) = pyplot.subplots(
            1, len(names), figsize=(12.8, 7.2), layout="constrained", squeeze=False
        )
        for panel, name in zip(panels, names, strict=True):
            shown = [row for row in rows if row.name == name]
            places = np.arange(len(shown))
            for offset, label, color, values in (
                (-0.2, "PyTorch, eager", "#9aa5b1", [row.eager_ms for row in shown]),
                (+0.2, "Pelton, compiled", "#d9480f", [row.compiled_ms for row in shown]),
            ):
                bars = panel.bar(places + offset, values, 0.38, label=label, color=color)
                panel.bar_label(bars, fmt="%.1f", padding=3, fontsize=13)
            panel.set_title(name, fontweight="bold")
            panel.set_xticks(places, [str(row.batch) for row in shown])
            panel.set_xlabel("batch size (inputs per call)")
            panel.margins(y=0.12)
        panels[0].set_ylabel("median latency (ms), lower is better")
        bars_and_labels = panels[0].get_legend_handles_labels()
        figure.legend(*bars_and_labels, loc="outside lower center", ncols=2, frameon=False)
        figure.get_layout_engine().set(w_pad=0.25, h_pad=0.15)
        figure.suptitle("One call: PyTorch and its compiled export on the same CPU", fontsize=20)
        figure.savefig(path, dpi=150)
        pyplot.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Build, run, compare; return 1 if numbers differ."""
    parser = argparse.ArgumentParser(description="From PyTorch to compiled code, twice.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of all files")
    parser.add_argument("--seconds", type=float, default=1, help="time for each latency")
    parser.add_argument("--small", action="store_true", help="tiny networks, for a test")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    warn_of_load()
    rows = []
    for case in make_cases(args.small):
        build(case, args.out)
        rows += measure(case, args.seconds, args.out)
    print_table(rows)
    plot(rows, args.out / "latency.png")
    console.print(f"plot: {args.out / 'latency.png'}", soft_wrap=True)
    if not all(row.equal for row in rows):
        console.print("[red]The compiled results differ from eager PyTorch.[/]")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
