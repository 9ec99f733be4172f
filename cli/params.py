"""`pelton params`: list, convert, compare and check parameter archives."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from pelton.runtime.archive import check_parameters, load_parameters, write_archive
from pelton.runtime.archive.parameter import Parameter, type_text
from pelton.runtime.archive.parameter_set import ParameterSet
from pelton.runtime.errors import PeltonError

from .options import Subcommands

_SCOPE = ""


def add_parser(subparsers: Subcommands) -> None:
    """Add `params` and its subcommands to the command line.

    Each sets `run`, a function from the parsed arguments to the exit status.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_parser(parser.add_subparsers())
        >>> parser.parse_args(["params", "list", "a.irpa"]).run.__name__
        'run_list'
    """
    params = subparsers.add_parser("params", help="list, convert, compare and check weights")
    commands = params.add_subparsers(required=True, metavar="command")

    command = commands.add_parser("list", help="show names, types, shapes and sizes")
    command.add_argument("files", nargs="+", metavar="file")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run_list)

    command = commands.add_parser("convert", help="write archives into one of another format")
    command.add_argument(
        "files", nargs="+", metavar="file", help=".irpa, .safetensors, .gguf, .json"
    )
    command.add_argument("target", help="ends in .irpa or .safetensors")
    command.set_defaults(run=run_convert)

    command = commands.add_parser("diff", help="compare two archives; status 1 if they differ")
    command.add_argument("first")
    command.add_argument("second")
    command.set_defaults(run=run_diff)

    command = commands.add_parser("check", help="read archives whole; status 1 if one is unsound")
    command.add_argument("files", nargs="+", metavar="file")
    command.add_argument("--like", metavar="file", help="expect its names, types and shapes")
    command.set_defaults(run=run_check)


def run_list(args: argparse.Namespace) -> int:
    """Print the parameters of `args.files`; as JSON if `args.json`."""
    parameters = _open(args.files)
    if args.json:
        print(json.dumps([_as_json(p) for p in parameters.values()], ensure_ascii=False))
        return 0
    table = Table(caption=_total(parameters), caption_justify="right")
    table.add_column("name", overflow="fold")
    table.add_column("type")
    table.add_column("shape")
    table.add_column("size", justify="right")
    first_names: dict[Any, str] = {}
    for p in parameters.values():
        first = first_names.setdefault(p.identity() or p.name, p.name)
        size = "splat" if p.splat else decimal(p.nbytes)
        table.add_row(
            escape(p.name),
            p.type_name or "blob",
            "x".join(map(str, p.shape)) or "scalar",
            size if first == p.name else f"= {escape(first)}",
        )
    Console().print(table)
    return 0


def run_convert(args: argparse.Namespace) -> int:
    """Write the parameters of `args.files` to `args.target`."""
    parameters = _open(args.files)
    with _progress(f"writing {args.target}", parameters.nbytes) as advance:
        write_archive(args.target, parameters.values(), progress=advance)
    Console().print(f"{escape(args.target)}: {_total(parameters)}")
    return 0


def run_diff(args: argparse.Namespace) -> int:
    """Print where `args.first` and `args.second` differ; return 1 if they do."""
    first, second = _open([args.first]), _open([args.second])
    table = Table("name", escape(args.first), escape(args.second), "difference")
    with _progress("comparing", first.nbytes) as advance:
        for name in dict.fromkeys((*first, *second)):
            one, other = first.get(name), second.get(name)
            difference = _difference(one, other, advance)
            if difference:
                table.add_row(escape(name), _describe(one), _describe(other), difference)
    if table.row_count:
        Console().print(table)
    else:
        Console().print(f"the same: {_total(first)}")
    return 1 if table.row_count else 0


def run_check(args: argparse.Namespace) -> int:
    """Read `args.files` whole and print what is wrong; return 1 if anything is.

    With `args.like`, the names, types and shapes must be those of that archive. NaN is wrong,
    infinities are only counted.
    """
    status = 0
    for file in args.files:
        try:
            parameters = _open([file])
            if args.like:
                _check_like(parameters, _open([args.like]))
            with _progress(f"reading {file}", parameters.nbytes) as advance:
                counts = [_count(parameter, advance) for parameter in parameters.values()]
        except PeltonError as error:
            Console().print(f"[red]unsound[/] {escape(str(error))}")
            status = 1
            continue
        for parameter, count in zip(parameters.values(), counts, strict=True):
            if count.nan or count.infinite:
                found = f"{count.nan} NaN, {count.infinite} infinite values"
                Console().print(f"{escape(file)}: {escape(str(parameter))}: {found}")
        bad = any(count.nan for count in counts)
        status |= bad
        word = "[red]has NaN[/]" if bad else "[green]sound[/]"
        Console().print(f"{word} {escape(file)}: {_total(parameters)}")
    return status


@dataclass
class _Count:
    nan: int = 0
    infinite: int = 0


def _open(files: list[str]) -> ParameterSet:
    return load_parameters(files, [_SCOPE])[_SCOPE]


def _total(parameters: ParameterSet) -> str:
    return f"{len(parameters)} parameters, {decimal(parameters.nbytes)}"


def _describe(parameter: Parameter | None) -> str:
    return type_text(parameter.type_name, parameter.shape) if parameter else "-"


def _as_json(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "type": parameter.type_name or None,
        "shape": parameter.shape,
        "nbytes": parameter.nbytes,
        "splat": parameter.splat,
    }


def _check_like(parameters: ParameterSet, model: ParameterSet) -> None:
    needed = {p.name: (p.dtype, p.shape) for p in model.values() if p.dtype is not None}
    typed = ParameterSet((p for p in parameters.values() if p.dtype is not None), parameters.origin)
    check_parameters({_SCOPE: needed}, {_SCOPE: typed})


def _difference(
    first: Parameter | None, second: Parameter | None, advance: Callable[[int], object]
) -> str:
    """Return in words how two parameters differ, or an empty text."""
    if first is None or second is None:
        return "only here" if second is None else "only there"
    if (first.type_name, first.shape) != (second.type_name, second.shape):
        return "type or shape"
    largest = None
    for mine, theirs in zip(first.chunks(), second.chunks(), strict=True):
        advance(mine.nbytes)
        if not np.array_equal(mine, theirs):
            largest = max(largest or 0.0, _distance(first, mine, theirs))
    if largest is None:
        return ""
    return f"values, by up to {largest:.3g}" if largest else "values"


def _distance(parameter: Parameter, mine: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> float:
    """Return the largest difference of two numbers in a chunk; 0 if they cannot be compared."""
    first, second = _numbers(parameter, mine), _numbers(parameter, theirs)
    if first is None or second is None:
        return 0.0
    wide = np.complex128 if np.iscomplexobj(first) else np.float64
    with np.errstate(invalid="ignore"):
        distances = np.abs(first.astype(wide) - second.astype(wide))
    return float(np.nan_to_num(distances, nan=np.inf).max())


def _count(parameter: Parameter, advance: Callable[[int], object]) -> _Count:
    count = _Count()
    for chunk in parameter.chunks():
        advance(chunk.nbytes)
        numbers = _numbers(parameter, chunk)
        if numbers is not None and numbers.dtype.kind not in "biu":
            count.nan += int(np.isnan(numbers).sum())
            count.infinite += int(np.isinf(numbers).sum())
    return count


def _numbers(parameter: Parameter, chunk: NDArray[np.uint8]) -> NDArray[Any] | None:
    """Return the elements in a chunk; None if their type is not known or narrower than a byte."""
    dtype = parameter.dtype
    return chunk.view(dtype.numpy) if dtype is not None and dtype.bits >= 8 else None


@contextmanager
def _progress(text: str, nbytes: int) -> Iterator[Callable[[int], object]]:
    """Show a bar on a terminal; yield what to call with each number of bytes that are done."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    disable = not console.is_terminal
    with Progress(*columns, TransferSpeedColumn(), console=console, disable=disable) as bar:
        task = bar.add_task(escape(text), total=nbytes)
        yield lambda done: bar.advance(task, done)
