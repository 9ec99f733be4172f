"""The command line, `pelton`: one module for each subcommand."""

from .entry import main

__all__ = ["main"]
