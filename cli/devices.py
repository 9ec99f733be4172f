"""`pelton devices`: what compiled modules can run on here."""

from __future__ import annotations

import argparse
import dataclasses
import json

from rich import box
from rich.markup import escape
from rich.table import Table

from pelton.runtime import devices

from .options import Subcommands
from .terminal import results_console


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "devices",
        help="list the devices of this machine",
        description="List the devices that pelton run --device takes.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the devices that the installed runtime finds."""
    found = devices()
    if args.json:
        print(json.dumps([dataclasses.asdict(device) for device in found]))
        return 0
    table = Table("device", "name", box=box.SIMPLE_HEAD)
    for device in found:
        table.add_row(escape(device.uri), escape(device.name))
    results_console().print(table)
    return 0
