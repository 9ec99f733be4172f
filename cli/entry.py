"""`main`: from arguments to an exit status, whatever happens on the way.

Statuses: 0 done; 1 an error, reported in one line; 2 wrong usage; 130 interrupted. What a
subcommand needs beyond numpy is imported when it runs, so that help and errors of usage come at
once.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import sys
from collections.abc import Iterator, Sequence

from pelton.runtime.progress import listening

from . import (
    bench,
    build,
    cache,
    compile,
    devices,
    doctor,
    explain,
    export,
    inspect,
    params,
    run,
    triton_repo,
    tune,
    unpack,
    verify,
)
from .terminal import Stages, report, warnings_in_one_line

_INTERRUPTED = 130
_SUBCOMMANDS = (
    export, explain, compile, tune, build, verify, run, bench, inspect, unpack, triton_repo, params,
    cache, devices, doctor,
)  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; each subcommand sets `run`, from its arguments to the exit status."""
    parser = argparse.ArgumentParser(
        prog="pelton",
        description="Export PyTorch programs ahead of time, compile them, run them.",
        epilog="See pelton COMMAND --help for each.",
    )
    parser.add_argument("--version", action="version", version=importlib.metadata.version("pelton"))
    parser.add_argument(
        "--verbose", action="store_true", help="show diagnostics and tracebacks of errors"
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for subcommand in _SUBCOMMANDS:
        subcommand.add_parser(subparsers)
    for subparser in subparsers.choices.values():
        if subparser.get_default("run") is not None:  # else it has subcommands of its own
            subparser.add_argument(
                "--verbose",
                action="store_true",
                default=argparse.SUPPRESS,
                help="show diagnostics and tracebacks of errors",
            )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        argv: The arguments; by default those of the process.

    Raises:
        SystemExit: The usage is wrong (status 2), or help was asked for.

    Example:
        >>> main(["inspect", "missing.vmfb"])
        1
    """
    args = build_parser().parse_args(argv)
    stages = Stages()
    with (
        warnings_in_one_line(args.verbose),
        _importable(os.getcwd()),
        listening(stages.show, stages.advance),
    ):
        try:
            status = int(args.run(args))
            sys.stdout.flush()
            return status
        except KeyboardInterrupt:
            return _INTERRUPTED
        except BrokenPipeError:  # the reader, such as `head`, had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            report(error, verbose=args.verbose)
            return 1


@contextlib.contextmanager
def _importable(folder: str) -> Iterator[None]:
    """Let modules in `folder` be imported, as `python -m` does."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
