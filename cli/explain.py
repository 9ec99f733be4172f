"""`pelton explain`: what torch.compile makes of a program, and which target takes what."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pelton.runtime.errors import ExportError
from pelton.runtime.progress import stage

from .export import load_program
from .inputs import Input, Range, Tensor, add_input_option, array_of
from .options import Subcommands
from .terminal import results_console

if TYPE_CHECKING:
    from pelton.aot.dynamo import Explanation
    from pelton.aot.dynamo.explanation import Graph, Guards


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "explain",
        help="show what torch.compile makes of a program",
        description="Run a program once under torch.compile and show its graphs, where and why "
        "they break, their operators and which target takes them, dynamic sizes and guards.",
        epilog='example: pelton explain zoo.nets:resnet --input "b=1..8x3x224x224xf32"',
    )
    parser.add_argument("program", metavar="MODULE:NAME", help="as for pelton export")
    add_input_option(
        parser,
        "[NAME:]SPEC",
        "an argument: SHAPExTYPE whose sizes may be dynamic: ?, 1..8 or b=1..4..8; =VALUES; "
        "@FILE.npy; or a number",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what torch.compile makes of `args.program`.

    Raises:
        ExportError: The program cannot be found or run.
    """
    with stage("loading PyTorch"):
        from pelton.aot.dynamo import explain
    program = load_program(args.program)
    if not callable(program):
        raise ExportError(f"{args.program} is a {type(program).__name__}, which cannot be called")
    positional = [_example(given) for given in args.inputs if given.name is None]
    named = {given.name: _example(given) for given in args.inputs if given.name is not None}
    with stage("running under torch.compile"):
        found = explain(program, *positional, **named)
    if args.json:
        json.dump(dataclasses.asdict(found), sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        _print(found, results_console())
    return 0


_FREE_EXAMPLE = 3
"""Example of a size without bounds; programs seldom treat it in a way of its own."""


def _example(given: Input) -> Any:
    """Return an example of an input, with its dynamic sizes marked for torch."""
    import torch

    from pelton.aot.compat.dynamo import maybe_mark_dynamic

    value = given.value
    if isinstance(value, Path):
        return torch.from_numpy(array_of(given))
    if isinstance(value, Range):
        return value.opt
    if not isinstance(value, Tensor):
        return value
    sizes = [size.opt if isinstance(size, Range) else size for size in value.sizes]
    shape = tuple(_FREE_EXAMPLE if size is None else size for size in sizes)
    array = array_of(dataclasses.replace(given, value=dataclasses.replace(value, sizes=shape)))
    tensor = torch.from_numpy(array) if value.dtype.numpy.kind != "V" else None
    if tensor is None:
        tensor = torch.zeros(shape, dtype=getattr(torch, value.dtype.name))
    if value.values is None and tensor.is_floating_point():
        tensor = torch.rand(shape, dtype=torch.float32).to(tensor.dtype)
    for axis, size in enumerate(value.sizes):
        if not isinstance(size, int):
            maybe_mark_dynamic(tensor, axis)
    return tensor


def _print(found: Explanation, console: Console) -> None:
    count = len(found.graphs)
    console.print(
        f"[bold]{count} graph{'s' * (count != 1)}, {len(found.breaks)} "
        f"break{'s' * (len(found.breaks) != 1)}[/]"
    )
    for number, each in enumerate(found.breaks, 1):
        console.print(f"  break {number}: {escape(each.reason)}", style="yellow")
        if each.location is not None:
            console.print(f"    at {escape(str(each.location))}{escape(_source_of(each.location))}")
        for text in (each.explanation, each.hint):
            if text:
                console.print(f"    {escape(text)}", style="dim")
    for number, graph in enumerate(found.graphs, 1):
        _print_graph(number, graph, console)
    _print_guards(found.guards, console)


def _source_of(location: Any) -> str:
    import linecache

    line = linecache.getline(location.file, location.line).strip()
    return f": {line}" if line else ""


def _print_graph(number: int, graph: Graph, console: Console) -> None:
    total = sum(operator.count for operator in graph.operators)
    where = f", from {graph.location}" if graph.location is not None else ""
    console.print(f"[bold]graph {number}[/]: {total} operators{escape(where)}")
    for size in graph.sizes:
        console.print(f"  dynamic   {escape(size)}")
    for target, reason in graph.refusals.items():
        console.print(f"  refused by {target}: {escape(reason)}", style="red")
    for target, reason in graph.unchecked.items():
        console.print(f"  not checked for {target}: {escape(reason)}", style="dim")
    if not graph.operators:
        return
    targets = list(graph.operators[0].taken)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("operator", overflow="fold")
    table.add_column("count", justify="right")
    for target in targets:
        table.add_column(target)
    for operator in graph.operators:
        taken = [operator.taken[target] for target in targets]
        style = "red" if "missing" in taken else None
        table.add_row(escape(operator.name), str(operator.count), *taken, style=style)
    console.print(table)


def _print_guards(guards: Guards, console: Console) -> None:
    console.print("[bold]guards[/]: what is compared at each call; else torch compiles again")
    lines = {
        "sizes": guards.sizes,
        "values": guards.values,
        "tensors": guards.tensors,
        "others": [f"{count} {kind}" for kind, count in guards.objects.items()],
    }
    for name, texts in lines.items():
        if texts:
            console.print(f"  {name:9} {escape(', '.join(texts))}")
