"""`pelton verify`: a compiled module against PyTorch, number by number."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pelton.runtime.progress import stage

from .export import load_program
from .options import Subcommands
from .parameters import add_parameters_option, parameters_of

if TYPE_CHECKING:
    from pelton.runtime.artifacts.vmfb import VmfbInfo


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "verify",
        help="compare a compiled module with PyTorch",
        description="Call a compiled module and PyTorch with the same inputs, at several sizes of "
        "every dynamic dimension, and compare what they give. Status 1 where they differ.",
        epilog="example: pelton verify m.mlirbc m.vmfb --against zoo.nets:resnet --bisect",
    )
    parser.add_argument("module", metavar="MODULE", help="the .mlir or .mlirbc file")
    parser.add_argument("artifact", metavar="FILE", help="what pelton compile made of it")
    parser.add_argument(
        "--against",
        metavar="MODULE:NAME",
        help="the model, as for pelton export; by default the MLIR file itself is run by PyTorch",
    )
    add_parameters_option(parser)
    parser.add_argument("--device", help="what to run on, as pelton devices lists it")
    parser.add_argument("--seeds", type=int, default=3, help="random inputs at each size")
    parser.add_argument(
        "--integers",
        type=_integers,
        action="append",
        default=[],
        metavar="NAME=LOW..HIGH",
        help="the range of an integer input; by default it is found",
    )
    parser.add_argument(
        "--sizes",
        type=_sizes,
        action="append",
        default=[],
        metavar="NAME=SIZE[,NAME=SIZE]",
        help="sizes of dynamic dimensions to try as well",
    )
    parser.add_argument(
        "--tolerance",
        type=_tolerance,
        action="append",
        default=[],
        metavar="TYPE=NUMBER",
        help="how far results may be off, as a part of their size: float32=1e-4",
    )
    parser.add_argument(
        "--nonfinite", action="store_true", help="try infinities and NaN among the inputs"
    )
    parser.add_argument(
        "--bisect",
        nargs="?",
        const=True,
        default=False,
        metavar="FOLDER",
        help="find the first operator that differs, and write a script that shows it",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare `args.artifact` with PyTorch, and print the table.

    Raises:
        NumericsError: They differ.
        PeltonError: A file cannot be used, or nothing could be compared.
    """
    with stage("loading the compiler"):
        from pelton.aot import Numerics, NumericsError, export
        from pelton.runtime.artifacts.vmfb import read_info
    options = Numerics(
        seeds=range(args.seeds),
        nonfinite=args.nonfinite,
        integers=dict(args.integers),
        sizes=args.sizes,
        tolerances=dict(args.tolerance),
        bisect=args.bisect,
    )
    with stage(f"reading {args.module}"):
        output = export(args.module)
    target, compile_options = _compiled_for(read_info(args.artifact))
    try:
        report = output.verify(
            numerics=options,
            artifact=args.artifact,
            against=load_program(args.against) if args.against else None,
            parameters=parameters_of(args.parameters),
            device=args.device,
            target=target,
            **compile_options,
        )
    except NumericsError as error:
        print(error.report)
        raise
    print(report)
    return 0


def _compiled_for(info: VmfbInfo) -> tuple[str, dict[str, Any]]:
    """Return the target and options to compile parts of the module with, as the artifact was."""
    backend = str(info.target.get("backend", "cpu"))
    gpu = info.target.get("gpu")
    options: dict[str, Any] = {
        key: info.options[key] for key in ("optimization_level", "flags") if key in info.options
    }
    if info.target.get("cpu") == "generic":
        options["target_cpu"] = "generic"
    return (f"{backend}:{gpu}" if gpu else backend), options


def _integers(text: str) -> tuple[str, tuple[int, int]]:
    match = re.fullmatch(r"(.+)=(-?\d+)\.\.(-?\d+)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected NAME=LOW..HIGH, got {text!r}")
    return match[1], (int(match[2]), int(match[3]))


def _sizes(text: str) -> dict[str, int]:
    pairs: Sequence[str] = text.split(",")
    matches = [re.fullmatch(r"(.+)=(\d+)", pair) for pair in pairs]
    found = {match[1]: int(match[2]) for match in matches if match}
    if len(found) != len(pairs):
        raise argparse.ArgumentTypeError(f"expected NAME=SIZE[,NAME=SIZE], got {text!r}")
    return found


def _tolerance(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected TYPE=NUMBER, got {text!r}") from None
