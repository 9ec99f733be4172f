"""`pelton inspect`: show what a file holds."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from .describe import Description, ParameterLine, describe, target_text
from .options import Subcommands
from .terminal import results_console


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "inspect",
        help="show what a file holds",
        description="Show entry points, signatures, parameters, target and versions of a file: "
        ".mlir, .mlirbc, .vmfb, .trtm, .irpa, .safetensors, .gguf.",
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what `args.file` holds.

    Raises:
        ArtifactError: There is no such file, or it is damaged.
    """
    description = describe(args.file)
    if args.json:
        json.dump(description.to_dict(), sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        _print(description, results_console())
    return 0


def _print(found: Description, console: Console) -> None:
    console.print(f"[bold]{escape(str(found.path))}[/]: {found.kind}, {decimal(found.nbytes)}")
    target = target_text(found)
    if target:
        console.print(f"  target    {escape(target)}")
        options = [f"{name}={_text(value)}" for name, value in found.options.items() if value != []]
        console.print(f"  options   {escape(', '.join(options))}")
    if found.versions:
        versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
        console.print(f"  made by   {escape(versions)}")
    if found.signatures or found.unsigned:
        console.print("[bold]entry points[/]")
    for signature in found.signatures:
        console.print(f"  {escape(str(signature))}")
        if signature.location:
            console.print(f"    from {escape(signature.location)}", style="dim")
        if signature.mutates:
            console.print(f"    changes {escape(', '.join(signature.mutates))}", style="dim")
        for line in _engine_lines(found.engines.get(signature.name, {})):
            console.print(f"    {escape(line)}", style="dim")
    for name in found.unsigned:
        console.print(f"  {escape(name)}, without a Pelton signature")
    if found.state:
        console.print("[bold]state[/]")
        for name, leaf in found.state.items():
            console.print(f"  {escape(name)}: {escape(str(leaf))}")
    for scope, lines in found.parameters.items():
        _print_parameters(scope, lines, console)


def _engine_lines(engine: dict[str, Any]) -> Iterator[str]:
    """Say in lines what a TensorRT package holds for an entry point."""
    for role, member in engine.get("members", {}).items():
        yield f"{role.replace('_', ' ')}: {member['name']}, {decimal(member['nbytes'])}"
    if engine.get("report"):
        yield ", ".join(f"{name}: {_text(value)}" for name, value in engine["report"].items())
    for profile in engine.get("profiles", ()):
        bounds = (
            f"{name} {_shape(b['min'])}..{_shape(b['opt'])}..{_shape(b['max'])}"
            for name, b in profile["inputs"].items()
        )
        yield f"profile {profile['name']}: {', '.join(bounds) or 'fixed sizes'}"
    yield from engine.get("notes", ())


def _shape(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes)) or "scalar"


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _print_parameters(scope: str, lines: list[ParameterLine], console: Console) -> None:
    total = decimal(sum(line.nbytes for line in lines))
    where = f" of scope {scope!r}" if scope else ""
    console.print(f"[bold]parameters{escape(where)}[/]: {len(lines)}, {total}")
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("name", overflow="fold")
    table.add_column("type")
    table.add_column("shape")
    table.add_column("size", justify="right")
    for line in lines:
        table.add_row(escape(line.name), line.dtype, _shape(line.shape), decimal(line.nbytes))
    console.print(table)
