"""`pelton compile`: from an MLIR file to an artifact that `pelton run` runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.filesize import decimal

from pelton.runtime.progress import stage

from .terminal import say


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "compile",
        help="compile an MLIR file",
        description="Compile an MLIR file that was exported before; no model is needed.",
        epilog="example: pelton compile m.mlirbc -o m.vmfb --target cpu",
    )
    parser.add_argument("module", metavar="FILE", help=".mlir or .mlirbc")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="what to write")
    parser.add_argument(
        "--target",
        default="cpu",
        help="cpu (this machine's; the default), cuda[:ARCH], vulkan, rocm:ARCH, ...",
    )
    parser.add_argument(
        "-O",
        dest="optimization_level",
        type=int,
        choices=range(6),
        help="optimisation level",
    )
    parser.add_argument(
        "--cpu", dest="target_cpu", metavar="NAME", help="host, generic, or a name that LLVM knows"
    )
    parser.add_argument(
        "--flag",
        dest="flags",
        action="append",
        metavar="FLAG",
        help="one more flag of the compiler, as in --flag=--iree-opt-data-tiling",
    )
    parser.add_argument(
        "--isolate",
        action=argparse.BooleanOptionalAction,
        help="compile in a child process, so that a crash of the compiler is an error",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compile `args.module` to `args.output`.

    Raises:
        ArtifactError: A file cannot be read or written.
        CompileError: The compiler failed.
        ExportError: Unknown target or option.
    """
    with stage("loading the compiler"):
        from pelton.aot import export
    with stage(f"reading {args.module}"):
        exported = export(args.module)
    names = ("optimization_level", "target_cpu", "flags", "isolate")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    exported.compile(args.output, target=args.target, **given)
    say(f"{args.output}: {decimal(Path(args.output).stat().st_size)}, compiled for {args.target}")
    return 0
