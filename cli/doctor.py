"""`pelton doctor`: which packages are there, which are missing, and how to get them."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from rich import box
from rich.markup import escape
from rich.table import Table

from .options import Subcommands
from .terminal import results_console


@dataclass(frozen=True)
class Requirement:
    """A package that Pelton needs, or that an extra of it adds.

    Attributes:
        package: Its name.
        bounds: The versions that fit, such as `>=3.13,<3.14`; empty: any.
        extras: The extras that ask for it; none where Pelton always needs it.
    """

    package: str
    bounds: str
    extras: tuple[str, ...] = ()

    @property
    def found(self) -> str | None:
        """The installed version; None if there is none."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    @property
    def remedy(self) -> str:
        """The command that gets it; empty where it is there in a version that fits."""
        if self.found is not None and satisfies(self.found, self.bounds):
            return ""
        if self.extras:
            return f"pip install 'pelton[{self.extras[0]}]'"
        return f"pip install '{self.package}{self.bounds}'"


_REQUIREMENT = re.compile(r"([\w.-]+)\s*([^;]*)(?:;.*extra == [\"']([\w-]+)[\"'])?")
_OLDER_PYTHON = re.compile(r";.*python_version < [\"']3\.(\d+)[\"']")
_FOR_DEVELOPERS = "dev"


def requirements(stated: Iterable[str]) -> list[Requirement]:
    """Return the requirements in a distribution's metadata, one for each package.

    Example:
        >>> requirements(["numpy>=1.26", 'onnx>=1.18; extra == "rtx"'])[1]
        Requirement(package='onnx', bounds='>=1.18', extras=('rtx',))
    """
    found: dict[str, Requirement] = {}
    for line in stated:
        match = _REQUIREMENT.match(line)
        older = _OLDER_PYTHON.search(line)
        if older is not None and sys.version_info >= (3, int(older[1])):
            continue
        if match is None or match[3] == _FOR_DEVELOPERS:
            continue
        package, bounds, extra = match[1], match[2].strip(), match[3]
        known = found.get(package)
        if known is None:
            found[package] = Requirement(package, bounds, (extra,) if extra else ())
        elif known.extras and extra:
            found[package] = Requirement(package, known.bounds, (*known.extras, extra))
    return list(found.values())


def satisfies(version: str, bounds: str) -> bool:
    """Return whether a version lies within bounds of the forms `>=1.2` and `<3`, joined by commas.

    Example:
        >>> satisfies("3.13.0", ">=3.13,<3.14"), satisfies("2.9.1+cpu", ">=2.10")
        (True, False)
    """
    number = _release(version)
    for bound in filter(None, bounds.split(",")):
        if bound.startswith(">=") and number < _release(bound[2:]):
            return False
        if bound.startswith("<") and number >= _release(bound[1:]):
            return False
    return True


def _release(version: str) -> tuple[int, ...]:
    match = re.match(r"\s*(\d+(?:\.\d+)*)", version)
    return tuple(map(int, match[1].split("."))) if match else ()


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "doctor",
        help="check the installation",
        description="Show the versions found and what is missing; status 1 if it is needed.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what was found; return 1 if something that is needed is missing or too old."""
    console = results_console()
    console.print(
        f"pelton {importlib.metadata.version('pelton')}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}"
    )
    table = Table("package", "needed", "found", "to get it", box=box.SIMPLE_HEAD)
    bad = False
    for requirement in requirements(importlib.metadata.requires("pelton") or ()):
        needed = f"for {', '.join(requirement.extras)}" if requirement.extras else "always"
        problem = bool(requirement.remedy) and not requirement.extras
        bad = bad or problem
        found = requirement.found or "missing"
        style = "red" if problem else "yellow" if requirement.remedy else "green"
        name = escape(requirement.package + requirement.bounds)
        table.add_row(name, needed, f"[{style}]{escape(found)}[/]", escape(requirement.remedy))
    console.print(table)
    console.print(
        "[red]Something that is needed is missing.[/]" if bad else "All that is needed is there."
    )
    return 1 if bad else 0
