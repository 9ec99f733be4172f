"""`pelton build`: export and compile all that a job file names, several jobs at a time."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from pelton.runtime.progress import stage

from .options import Subcommands
from .terminal import results_console, say

if TYPE_CHECKING:
    from .jobs.executors import Executor
    from .jobs.schedule import Result

_STYLES = {"done": "green", "up to date": "dim", "failed": "red", "not run": "yellow"}


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "build",
        help="export and compile models x targets x options",
        description="Export and compile what a job file names: models x targets x options. "
        "What is up to date is not made again.",
        epilog="example: pelton build jobs.toml --jobs 4",
    )
    parser.add_argument("file", metavar="FILE", help="the job file (TOML); see docs/build.md")
    parser.add_argument(
        "--executor",
        choices=("local", "ray"),
        default="local",
        help="processes of this machine (the default), or Ray",
    )
    parser.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help="a Ray cluster, or auto for the one of this machine; default: $RAY_ADDRESS, or else "
        "a Ray that is started here and ends with the build",
    )
    parser.add_argument(
        "--jobs", type=_from(1), metavar="N", help="jobs at a time; default: one for each processor"
    )
    parser.add_argument(
        "--retries",
        type=_from(0),
        default=1,
        metavar="N",
        help="how often a job is run again whose process was lost, or that failed for want of "
        "memory, a disk or a network (default: 1)",
    )
    parser.add_argument("--force", action="store_true", help="make what is up to date as well")
    parser.add_argument("--output", metavar="FOLDER", help="where the results go")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the jobs of `args.file`; return 1 if one of them failed.

    Raises:
        ArtifactError: The file cannot be read, or is not what it should be.
        MissingDependencyError: Ray is asked for and not installed.
        DeviceError: The Ray cluster cannot be reached.
    """
    with stage("loading the compiler"):
        from pelton.runtime.device.cpu import available_cpus

        from .jobs.matrix import read_jobs
        from .jobs.schedule import Schedule
    jobs = read_jobs(args.file, args.output)
    count = args.jobs or available_cpus()
    limit = args.jobs or (len(jobs) if args.executor == "ray" else count)
    # Results have stdout for themselves: Ray prints what it has to say of workers that died.
    to_stderr = contextlib.redirect_stdout(sys.stderr)
    with to_stderr, contextlib.closing(_executor(args, count)) as executor:
        schedule = Schedule(executor, limit, retries=args.retries, force=args.force, tell=_tell)
        results = schedule.run(jobs)
    _show(results, as_json=args.json, verbose=args.verbose)
    return 0 if all(result.ok for result in results) else 1


def _from(least: int) -> Callable[[str], int]:
    """Return what reads a number that must not be less than `least`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected {least} or more, got {text!r}")
        return int(text)

    return read


def _executor(args: argparse.Namespace, count: int) -> Executor:
    if args.executor == "ray":
        from .jobs.ray_executor import RayExecutor

        return RayExecutor(count, args.ray_address or os.environ.get("RAY_ADDRESS"))
    from .jobs.executors import LocalExecutor

    return LocalExecutor(count)


def _tell(result: Result) -> None:
    say(f"{result.job.name}: {result.status.value}")


def _show(results: Sequence[Result], *, as_json: bool, verbose: bool) -> None:
    if as_json:
        print(json.dumps([_as_json(result) for result in results]))
    else:
        results_console().print(_table(results))
    for result in results:
        for note in result.outcome.notes:
            print(f"pelton: warning: {result.job.name}: {note}", file=sys.stderr)
    for result in results:
        if result.status.value == "failed":  # why others were not run is in the table
            if verbose and result.outcome.detail:
                print(result.outcome.detail, file=sys.stderr)
            print(f"pelton: error: {result.job.name}: {result.outcome.error}", file=sys.stderr)


def _table(results: Sequence[Result]) -> Table:
    table = Table("model", "target", "options", "result", box=box.SIMPLE_HEAD)
    for name in ("seconds", "attempts", "size"):
        table.add_column(name, justify="right")
    for result in results:
        status = result.status.value
        ran = result.attempts > 0
        table.add_row(
            *map(escape, _labels(result)),
            f"[{_STYLES[status]}]{status}[/]",
            f"{result.outcome.seconds:.1f}" if ran else "",
            str(result.attempts) if ran else "",
            decimal(_size_bytes(result)) if result.ok else "",
        )
    return table


def _labels(result: Result) -> tuple[str, str, str]:
    _, *labels = result.job.name.split(".")
    target, options = (*(labels or ["(export)"]), "")[:2]
    return result.job.model, target, options


def _size_bytes(result: Result) -> int:
    return sum(facts.size_bytes for facts in result.outcome.wrote.values())


def _as_json(result: Result) -> dict[str, Any]:
    return {
        "job": result.job.name,
        "result": result.status.value,
        "files": [str(path) for path in result.job.outputs],
        "seconds": round(result.outcome.seconds, 3),
        "attempts": result.attempts,
        "error": result.outcome.error,
        "notes": list(result.outcome.notes),
        "sha256": {path: facts.sha256 for path, facts in result.outcome.wrote.items()},
    }
