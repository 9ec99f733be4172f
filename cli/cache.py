"""`pelton cache`: list and clear the compile cache."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from .options import Subcommands

if TYPE_CHECKING:
    from pelton.aot.targets.cache import CacheEntry, CompileCache


def add_parser(subparsers: Subcommands) -> None:
    """Add `cache` and its subcommands to the command line.

    Each sets `run`, a function from the parsed arguments to the exit status.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_parser(parser.add_subparsers())
        >>> parser.parse_args(["cache", "ls"]).run.__name__
        'run_list'
    """
    cache = subparsers.add_parser("cache", help="list and clear the compile cache")
    commands = cache.add_subparsers(required=True, metavar="command")
    for name, help_text, run in (
        ("ls", "show the artifacts, the last used first", run_list),
        ("clear", "remove all artifacts", run_clear),
    ):
        command = commands.add_parser(name, help=help_text)
        command.add_argument(
            "folder", nargs="?", help="default: aot.config.cache_dir, or the user's cache folder"
        )
        command.set_defaults(run=run)
        if run is run_list:
            command.add_argument("--json", action="store_true", help="print JSON")


def run_list(args: argparse.Namespace) -> int:
    """Print the artifacts in the cache; as JSON if `args.json`."""
    entries = _cache(args).entries()
    if args.json:
        print(json.dumps([_as_json(entry) for entry in entries]))
        return 0
    table = Table("key", "target", "entry points", caption=_total(entries), caption_justify="right")
    table.add_column("size", justify="right")
    table.add_column("last used")
    for entry in entries:
        used = datetime.datetime.fromtimestamp(entry.last_used).isoformat(" ", "seconds")
        points = escape(", ".join(entry.made.entry_points))
        table.add_row(
            entry.key[:12], escape(entry.made.target), points, decimal(entry.size_bytes), used
        )
    Console().print(table)
    return 0


def run_clear(args: argparse.Namespace) -> int:
    """Remove all artifacts from the cache."""
    cache = _cache(args)
    removed = cache.clear()
    Console().print(f"{escape(str(cache.folder))}: removed {_total(removed)}")
    return 0


def _cache(args: argparse.Namespace) -> CompileCache:
    from pelton.aot.spec.config import USER_CACHE_DIR, config
    from pelton.aot.targets.cache import CompileCache

    folder = args.folder or config.cache_dir or USER_CACHE_DIR
    return CompileCache(folder, config.cache_size_bytes)


def _total(entries: list[CacheEntry]) -> str:
    noun = "artifact" if len(entries) == 1 else "artifacts"
    return f"{len(entries)} {noun}, {decimal(sum(entry.size_bytes for entry in entries))}"


def _as_json(entry: CacheEntry) -> dict[str, object]:
    facts = dataclasses.asdict(entry)
    facts.pop("checksums")
    return {**facts, "path": str(entry.path)}
