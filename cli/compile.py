"""`pelton compile`: from an MLIR file to an artifact that `pelton run` runs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from pelton.runtime.errors import ExportError
from pelton.runtime.progress import stage

from .inputs import Range, parse_bounds
from .options import OptionGroup, Subcommands
from .parameters import add_parameters_option, parameters_of
from .terminal import say

_OPTIONS = (
    "optimization_level", "target_cpu", "flags", "isolate", "timeout_s", "flavor",
    "compute_capabilities", "workspace_bytes", "timing_cache", "weights", "fallback", "layer_info",
    "reference",
)  # fmt: skip
_PACKAGE_SUFFIX = ".trtm"


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "compile",
        help="compile an MLIR file",
        description="Compile an MLIR file that was exported before; no model is needed.",
        epilog="example: pelton compile m.mlirbc -o m.vmfb --target cpu",
    )
    parser.add_argument("module", metavar="FILE", help=".mlir or .mlirbc")
    parser.add_argument("-o", "--output", metavar="FILE", help="what to write")
    parser.add_argument(
        "--target",
        help="cpu (this machine's; the default), cuda[:ARCH], vulkan, rocm:ARCH, tensorrt (the "
        "default where the output ends in .trtm), ...",
    )
    parser.add_argument(
        "-O",
        dest="optimization_level",
        type=int,
        choices=range(6),
        help="optimisation level",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only tell what the target takes, and the memory that it will ask for",
    )
    parser.add_argument("--json", action="store_true", help="print the report of --dry-run as JSON")
    _add_iree_options(parser.add_argument_group("IREE"))
    _add_tensorrt_options(parser.add_argument_group("TensorRT"))
    parser.set_defaults(run=run)


def _add_iree_options(group: OptionGroup) -> None:
    group.add_argument(
        "--cpu", dest="target_cpu", metavar="NAME", help="host, generic, or a name that LLVM knows"
    )
    group.add_argument(
        "--flag",
        dest="flags",
        action="append",
        metavar="FLAG",
        help="one more flag of the compiler, as in --flag=--iree-opt-data-tiling",
    )
    group.add_argument(
        "--isolate",
        action=argparse.BooleanOptionalAction,
        help="compile in a child process, so that a crash of the compiler is an error",
    )
    group.add_argument(
        "--timeout",
        dest="timeout_s",
        type=float,
        metavar="SECONDS",
        help="the most time that the compile may take",
    )


def _add_tensorrt_options(group: OptionGroup) -> None:
    group.add_argument(
        "--flavor", help="rtx, tensorrt, or auto: TensorRT where it and a GPU are there"
    )
    group.add_argument(
        "--profile",
        dest="profiles",
        action="append",
        type=_profile,
        metavar="[NAME:]DIM=MIN..OPT..MAX,...",
        help="sizes to build for; several make several profiles",
    )
    group.add_argument(
        "--compute-capability",
        dest="compute_capabilities",
        action="append",
        metavar="X.Y",
        help="a GPU to build for, such as 8.9",
    )
    group.add_argument(
        "--workspace-bytes", type=int, metavar="N", help="the most scratch memory of a layer"
    )
    group.add_argument("--timing-cache", metavar="FILE", help="kernel timings that builds share")
    group.add_argument(
        "--weights",
        help="baked, shared (one copy for all entry points), or refit",
    )
    group.add_argument(
        "--fallback", help="iree: compile what TensorRT cannot take with IREE for CUDA"
    )
    group.add_argument(
        "--layer-info", action="store_true", default=None, help="keep a description of the layers"
    )
    group.add_argument(
        "--reference",
        action="store_true",
        default=None,
        help="keep the ONNX graphs, so that --device reference runs the package without a GPU",
    )
    add_parameters_option(group)


def _profile(text: str) -> tuple[str | None, dict[str, Any]]:
    """Read one `--profile`.

    Raises:
        argparse.ArgumentTypeError: It is of another form.

    Example:
        >>> _profile("prompt:batch=1,length=16..64..512")
        ('prompt', {'batch': 1, 'length': (16, 64, 512)})
    """
    name, colon, listed = text.rpartition(":")
    bounds: dict[str, Any] = {}
    for part in listed.split(","):
        dim, equals, size = part.strip().partition("=")
        if not equals:
            raise argparse.ArgumentTypeError(
                f"cannot read {part!r}; expected DIM=MIN..OPT..MAX, as in length=1..64..512"
            )
        read = parse_bounds(size)
        bounds[dim] = (read.min, read.opt, read.max) if isinstance(read, Range) else read
    return (name if colon else None), bounds


def run(args: argparse.Namespace) -> int:
    """Compile `args.module` to `args.output`, or report on it if `args.dry_run`.

    Raises:
        ArtifactError: A file cannot be read or written.
        CompileError: The compiler failed.
        ExportError: Unknown target or option.
        UnsupportedOpError: The target cannot take the program.
    """
    if args.output is None and not args.dry_run:
        raise ExportError("there is nothing to do: give -o FILE, or --dry-run")
    is_package = args.output is not None and args.output.endswith(_PACKAGE_SUFFIX)
    target = args.target or ("tensorrt" if is_package or args.dry_run else "cpu")
    options = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
    if args.profiles:
        options["profiles"] = {
            name or str(index): bounds for index, (name, bounds) in enumerate(args.profiles)
        }
    with stage("loading the compiler"):
        from pelton.aot import export
    with stage(f"reading {args.module}"):
        exported = export(args.module)
    parameters = parameters_of(args.parameters)
    if args.dry_run:
        return _report(exported.dry_run(target, parameters=parameters, **options), args.json)
    exported.compile(args.output, target=target, parameters=parameters, **options)
    say(f"{args.output}: {decimal(Path(args.output).stat().st_size)}, compiled for {target}")
    return 0


def _report(reports: Any, as_json: bool) -> int:
    """Print what a target takes; the status is 1 where it does not take all."""
    from .reports import print_reports, report_to_json

    if as_json:
        print(json.dumps([report_to_json(report) for report in reports], indent=1))
    else:
        print_reports(reports)
    return 0 if all(report.supported for report in reports) else 1
