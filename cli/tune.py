"""`pelton tune`: from an MLIR file to the fastest artifact for this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from pelton.runtime.progress import stage

from .options import Subcommands
from .terminal import results_console, say

if TYPE_CHECKING:
    from pelton.aot import Tuned


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "tune",
        help="compile an MLIR file to the fastest code for this machine",
        description="Compile an MLIR file in several variants, time those that are right on this "
        "machine in turns, and keep the fastest.",
        epilog="example: pelton tune m.mlirbc -o m.vmfb --cache ~/.cache/pelton",
    )
    parser.add_argument("module", metavar="FILE", help=".mlir or .mlirbc")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="what to write")
    parser.add_argument("--target", default="cpu", help="default: cpu (this machine's)")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="how long each variant is timed; default: 1"
    )
    parser.add_argument("--parameters", metavar="FILE", help="the archive of external weights")
    parser.add_argument("--device", help="what to run on, as pelton devices lists it")
    parser.add_argument(
        "--cache", metavar="FOLDER", help="a compile cache, which remembers what was found"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Tune `args.module` and compile it to `args.output`.

    Raises:
        ArtifactError: A file cannot be read or written.
        CompileError: No variant compiles and is right.
        ExportError: Unknown target, or one without variants.
    """
    with stage("loading the compiler"):
        from pelton.aot import export, tune
    with stage(f"reading {args.module}"):
        exported = export(args.module)
    tuned = tune(
        exported,
        target=args.target,
        seconds=args.seconds,
        parameters=args.parameters,
        device=args.device,
        cache_dir=args.cache,
    )
    _print(tuned)
    exported.compile(args.output, target=args.target, cache_dir=args.cache, variant=tuned.variant)
    say(f"{args.output}: {decimal(Path(args.output).stat().st_size)}, variant {tuned.variant}")
    return 0


def _print(tuned: Tuned) -> None:
    table = Table("variant", "ms", "", box=box.SIMPLE_HEAD)
    for trial in tuned.trials:
        mark = "fastest" if trial.variant == tuned.variant else escape(trial.problem)
        time = "" if trial.milliseconds is None else f"{trial.milliseconds:.3f}"
        table.add_row(trial.variant, time, mark)
    results_console().print(table)
