"""Types of the parts of an argument parser; those of argparse have private names."""

from __future__ import annotations

import argparse
from typing import Any, Protocol


class Subcommands(Protocol):
    """What `ArgumentParser.add_subparsers` returns."""

    @property
    def add_parser(self) -> AddParser:
        """Add a subcommand."""


class AddParser(Protocol):
    """Adds a subcommand."""

    def __call__(self, name: str, *args: Any, **options: Any) -> argparse.ArgumentParser:
        """Return the parser of a new subcommand.

        Args:
            name: Its name.
            args: None.
            options: `help`, and what `ArgumentParser` takes.
        """


class OptionGroup(Protocol):
    """What options can be added to: a parser, or a group within one."""

    def add_argument(self, *names: str, **options: Any) -> argparse.Action:
        """Add an option.

        Args:
            names: Its names, such as `--output`.
            options: What `ArgumentParser.add_argument` takes.
        """
