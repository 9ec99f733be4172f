"""`pelton bench`: a program run by several runners, measured side by side."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from pelton.runtime.errors import ExportError
from pelton.runtime.files import atomic_write
from pelton.runtime.progress import stage

from .inputs import Tensor, parse_input
from .options import Subcommands
from .terminal import results_console, say

if TYPE_CHECKING:
    from pelton.aot.bench import Report, Row


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "bench",
        help="measure a program by several runners",
        description="Measure a program by eager PyTorch, torch.compile, Pelton's targets and "
        "onnxruntime, in turns: cold start, time of a call, memory, size, difference from eager.",
        epilog="example: pelton bench zoo.nets:resnet --input 1x3x224x224xf32 --plot resnet.png",
    )
    parser.add_argument("program", metavar="MODULE:NAME", help="as for pelton export")
    parser.add_argument(
        "--input",
        dest="inputs",
        action="append",
        default=[],
        metavar="[NAME:]SPEC",
        help="an argument, as for pelton export; a dynamic size is measured at the middle one of "
        "n=1..64..256; integers are 0 or 1, unless they come from @FILE.npy",
    )
    parser.add_argument(
        "--targets",
        default="eager,inductor,cpu,onnxruntime,cuda,tensorrt",
        metavar="A,B",
        help="what to compare; default: %(default)s",
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="for each; default: 3")
    parser.add_argument("--threads", type=int, help="default: as many as there are processors")
    parser.add_argument(
        "--device", default="cpu", choices=("cpu", "cuda"), help="where eager and inductor run"
    )
    parser.add_argument("--seed", type=int, default=0, help="of weights and inputs")
    parser.add_argument("--json", metavar="FILE", help="save all numbers")
    parser.add_argument("--plot", metavar="FILE", help="draw them: .png, .svg or .html")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure `args.program`; return 1 if a result differs from eager's or a runner failed.

    Raises:
        ExportError: An input or a target is unknown, or eager cannot run the program.
        ArtifactError: A file cannot be written.
    """
    _check_inputs(args.inputs)
    if args.plot and importlib.util.find_spec("matplotlib") is None:
        raise ExportError("--plot needs matplotlib: pip install 'pelton[bench]'")
    with stage("loading PyTorch"):
        from pelton.aot.bench import Settings, measure, save_figure
        from pelton.runtime.device.cpu import available_cpus
    processors = available_cpus()
    report = measure(
        [sys.executable, "-m", "pelton.cli.bench_worker"],
        args.program,
        args.inputs,
        args.targets.split(","),
        Settings(args.seconds, args.threads or processors, args.device, args.seed),
    )
    _print(report)
    if args.json:
        with atomic_write(args.json) as file:
            file.write(report.to_json().encode())
    if args.plot:
        say(f"{save_figure(report, Path(args.plot))}: the plot")
    bad = any(row.status == "failed" or row.is_right is False for row in report.rows)
    return 1 if bad else 0


def _check_inputs(texts: list[str]) -> None:
    for text in texts:
        try:
            value = parse_input(text).value
        except argparse.ArgumentTypeError as error:
            raise ExportError(f"--input {text}: {error}") from None
        if isinstance(value, Tensor) and None in value.sizes:
            raise ExportError(
                f"--input {text}: a measured size needs a number; write n=1..64..256 for ?"
            )


_TIMES = ("", "p50 ms", "p10", "p90", "of eager", "calls/s", "CPU ms")
_STAGES = ("capture", "compile", "first call")


def _print(report: Report) -> None:
    console = results_console()
    console.print(f"{report.program}({', '.join(report.inputs)})", markup=False)
    stages = (f"{name} s" for name in _STAGES)
    table = Table(*_TIMES, *stages, "memory", "artifact", "difference", box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in report.measured:
        table.add_row(*_cells(report, row))
    console.print(table)
    for row in report.rows:
        if row.status != "measured":
            color = "red" if row.status == "failed" else "yellow"
            console.print(f"[{color}]{row.runner}: {row.status}:[/] {escape(row.reason)}")
        for note in row.notes:
            console.print(f"{row.runner}: {note}", markup=False, style="dim")
    machine = report.machine
    if float(machine["load"]) > float(machine["processors"] or 1) / 2:
        console.print(
            f"[yellow]The machine is busy (load {machine['load']} on {machine['processors']} "
            "processors): threads that wait for each other lose most. Measure again when it is "
            "idle, or take --threads 1 and the CPU ms.[/]"
        )


def _cells(report: Report, row: Row) -> list[str]:
    speed = report.speed_of(row)
    color = "green" if row.is_right else "red"
    return [
        row.runner,
        *(f"{row.percentile(percent):.3f}" for percent in (50, 10, 90)),
        f"{speed:.2f}x" if speed else "",
        f"{row.calls_per_second:.0f}",
        f"{row.processor_milliseconds:.3f}",
        *(f"{row.seconds[name]:.2f}" if name in row.seconds else "" for name in _STAGES),
        decimal(row.peak_bytes or 0),
        decimal(row.artifact_bytes) if row.artifact_bytes is not None else "",
        f"[{color}]{row.difference:.1e}[/]",
    ]
