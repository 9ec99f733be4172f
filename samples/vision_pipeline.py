"""A vision pipeline in two parts: preprocessing by torch.compile, the network as an artifact.

    python samples/vision_pipeline.py [--out out] [--seconds 3] [--target cpu]

Hypotheses of where an object is in a picture are cropped, normalised and masked, and a network
gives each a score. The preprocessing is a few operations that change often: torch.compile fuses
them where they are. The network is fixed: it is compiled once, to a file that needs no model
(TensorRT where there is a GPU, else the processor). The whole is measured against eager and against
either path alone: all of it by torch.compile, all of it as one artifact.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from pelton import aot, runtime
from pelton.aot.bench import Report, Row, save_figure

CROP = 64
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
TURN_SECONDS = 0.1
console = Console()


def preprocess(picture: torch.Tensor, mask: torch.Tensor, corners: torch.Tensor) -> torch.Tensor:
    """Crop, normalise and mask a picture at each hypothesis.

    Args:
        picture: [3, height, width], float32 from 0 to 255.
        mask: [height, width], bool: what belongs to the object.
        corners: [hypotheses, 2], int64: row and column of the upper left corner of each.

    Returns:
        [hypotheses, 3, CROP, CROP], float32.
    """
    steps = torch.arange(CROP, device=picture.device)
    rows = corners[:, 0, None, None] + steps[None, :, None]
    columns = corners[:, 1, None, None] + steps[None, None, :]
    crops = picture[:, rows, columns].transpose(0, 1) / 255
    mean = torch.tensor(MEAN, device=picture.device)[:, None, None]
    deviation = torch.tensor(DEVIATION, device=picture.device)[:, None, None]
    normal = ((crops - mean) / deviation).clamp(-3, 3)
    return normal * mask[rows, columns][:, None]


class Scorer(nn.Module):
    """Convolutions, a transformer layer over the hypotheses, and a score for each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 4 * width, 3, 2, 1), nn.BatchNorm2d(4 * width), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.compared = nn.Linear(4 * width, 12 * width)
        self.score = nn.Linear(4 * width, 1)

    def forward(self, crops: torch.Tensor) -> torch.Tensor:
        q, k, v = self.compared(self.features(crops))[None, None].chunk(3, 3)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)[0, 0]
        return self.score(mixed)[:, 0]


class Pipeline(nn.Module):
    """Both parts."""

    def __init__(self, scorer: nn.Module) -> None:
        super().__init__()
        self.scorer = scorer

    def forward(
        self, picture: torch.Tensor, mask: torch.Tensor, corners: torch.Tensor
    ) -> torch.Tensor:
        return self.scorer(preprocess(picture, mask, corners))


Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
Way = tuple[Row, Callable[[], torch.Tensor]]
"""What is told of a way of running the pipeline, and what runs it."""


def make_inputs(hypotheses: int, size: int, device: str) -> Inputs:
    """Return a picture with its mask and the corners of the hypotheses."""
    torch.manual_seed(0)
    corners = torch.randint(0, size - CROP, (hypotheses, 2))
    picture = torch.rand(3, size, size) * 255
    mask = torch.rand(size, size) > 0.2
    return picture.to(device), mask.to(device), corners.to(device)


def artifact(
    program: nn.Module, args: Sequence[torch.Tensor], path: Path, target: str
) -> tuple[runtime.Executable, dict[str, float]]:
    """Compile a program to a file and load it; return what each stage took, in seconds."""
    start = time.perf_counter()
    out = aot.export(program, args=args)
    captured = time.perf_counter()
    out.compile(path, target=target)
    compiled = time.perf_counter()
    return runtime.load(path), {"capture": captured - start, "compile": compiled - captured}


def build(pipeline: Pipeline, inputs: Inputs, target: str, folder: Path) -> list[Way]:
    """Return the ways of running the pipeline, each called once and compared with eager."""
    crops = preprocess(*inputs)
    suffix = "trtm" if target.startswith("tensorrt") else "vmfb"
    scorer, scorer_seconds = artifact(pipeline.scorer, [crops], folder / f"scorer.{suffix}", target)
    whole, whole_seconds = artifact(pipeline, inputs, folder / f"pipeline.{suffix}", target)
    fused, compiled = torch.compile(preprocess), torch.compile(pipeline)
    calls: dict[str, Callable[[], torch.Tensor]] = {
        "eager": lambda: pipeline(*inputs),
        "torch.compile": lambda: compiled(*inputs),
        "one artifact": lambda: whole(*inputs),
        "both": lambda: scorer(fused(*inputs)),
    }
    seconds = {"one artifact": whole_seconds, "both": scorer_seconds}
    rows = {name: Row(name, seconds=seconds.get(name, {})) for name in calls}
    expected = pipeline(*inputs)
    for name, call in calls.items():
        start = time.perf_counter()
        result = call()
        rows[name].seconds["first call"] = time.perf_counter() - start
        rows[name].difference = float((result - expected).abs().max())
        rows[name].is_right = torch.allclose(result, expected, rtol=1e-3, atol=1e-3)
    return [(rows[name], call) for name, call in calls.items()]


def take_turns(ways: Sequence[Way], seconds: float) -> None:
    """Time the ways in turns, so that other work of the machine falls on all alike."""
    for _ in range(max(1, round(seconds / TURN_SECONDS))):
        for row, call in ways:
            call()
            end = time.perf_counter() + TURN_SECONDS
            while time.perf_counter() < end:
                start = time.perf_counter()
                call()
                if torch.cuda.is_available():
                    torch.cuda.synchronize()
                row.milliseconds.append((time.perf_counter() - start) * 1e3)


def print_table(report: Report) -> None:
    table = Table("", "median, ms", "of eager", "prepared in, s", "largest difference")
    for row in report.rows:
        table.add_row(
            row.runner,
            f"{row.percentile(50):.2f}",
            f"{report.speed_of(row):.2f}x",
            f"{sum(row.seconds.values()):.1f}",
            f"[{'green' if row.is_right else 'red'}]{row.difference:.1e}[/]",
        )
    console.print(table)


def default_target() -> str:
    """Return TensorRT where there is a GPU and the target, else the processor."""
    from pelton.aot.targets import TARGETS

    if not torch.cuda.is_available():
        return "cpu"
    return "tensorrt" if "tensorrt" in TARGETS else "cuda"


def main(argv: Sequence[str] | None = None) -> int:
    """Build, compare, measure; return 1 if a result differs from eager's."""
    parser = argparse.ArgumentParser(description="Preprocessing and a network, four ways.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of all files")
    parser.add_argument("--seconds", type=float, default=3, help="time for each way")
    parser.add_argument("--target", default=default_target(), help="of the network")
    parser.add_argument("--small", action="store_true", help="a tiny network, for a test")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    device = "cpu" if args.target == "cpu" else "cuda"
    pipeline = Pipeline(Scorer(8 if args.small else 32)).eval().to(device)
    inputs = make_inputs(4 if args.small else 32, 160 if args.small else 480, device)
    with torch.inference_mode():
        ways = build(pipeline, inputs, args.target, args.out)
        take_turns(ways, args.seconds)
    shapes = ["x".join(map(str, tensor.shape)) for tensor in inputs]
    settings = {"threads": torch.get_num_threads(), "device": device}
    report = Report("vision pipeline", shapes, settings, [row for row, _ in ways])
    print_table(report)
    plot = save_figure(report, args.out / "vision_pipeline.png")
    console.print(f"plot: {plot}", soft_wrap=True)
    if not all(row.is_right for row in report.rows):
        console.print("[red]Results differ from eager PyTorch.[/]")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
