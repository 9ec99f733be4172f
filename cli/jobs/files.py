"""Files that jobs read and wrote: what they were, and whether they still are."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_SMALL_BYTES = 1 << 20
"""Files up to this size are compared by their content, larger ones first by size and time."""

_WRITES = os.O_WRONLY | os.O_RDWR
_SYSTEM = ("/proc/", "/sys/", "/dev/")
_INSTALLED = {"site-packages", "dist-packages", "__pycache__"}
"""Folders of packages, which records state by their versions, and of what is made from sources."""


@dataclass(frozen=True)
class FileFacts:
    """What a file was: size in bytes, time of the last change in nanoseconds, SHA-256."""

    size_bytes: int
    modified_ns: int
    sha256: str

    @staticmethod
    def of(path: Path) -> FileFacts:
        """Return the facts of a file.

        Raises:
            OSError: It cannot be read.
        """
        status = path.stat()
        with open(path, "rb") as file:
            digest = hashlib.sha256()
            while block := file.read(_SMALL_BYTES):
                digest.update(block)
        return FileFacts(status.st_size, status.st_mtime_ns, digest.hexdigest())

    def hold_for(self, path: Path) -> bool:
        """Return whether a file is what it was; without a checksum it never is.

        Example:
            >>> import pathlib
            >>> path = pathlib.Path("a.txt")
            >>> _ = path.write_text("a")
            >>> facts = FileFacts.of(path)
            >>> _ = path.write_text("b")
            >>> facts.hold_for(path)
            False
        """
        try:
            status = path.stat()
            if not self.sha256 or status.st_size != self.size_bytes:
                return False
            if status.st_size > _SMALL_BYTES and status.st_mtime_ns == self.modified_ns:
                return True
            return FileFacts.of(path).sha256 == self.sha256
        except OSError:
            return False


def facts_of(paths: Iterable[Path]) -> dict[str, FileFacts]:
    """Return the facts of files by their paths; of those that are there."""
    found = {}
    for path in paths:
        try:
            found[str(path)] = FileFacts.of(path)
        except OSError:
            continue
    return found


def all_hold(facts: Mapping[str, FileFacts]) -> bool:
    """Return whether all files are what they were."""
    return all(fact.hold_for(Path(path)) for path, fact in facts.items())


class ReadFiles:
    """The files that programs read in this process: their modules, and what Python opened.

    A worker does several jobs, and a module that one has imported stays imported for the next. So
    nothing is ever forgotten: a later job may be said to depend on more than it does, never on
    less. What libraries open without Python (`safetensors` does) is not seen.
    """

    def __init__(self) -> None:
        self._opened: set[str] = set()
        self._thread: int | None = None
        self._since_ns = time.time_ns()
        sys.addaudithook(self._on_event)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note what this thread opens while the block runs."""
        self._thread = threading.get_ident()
        try:
            yield
        finally:
            self._thread = None

    def facts(self, stated: Iterable[Path] = ()) -> dict[str, FileFacts]:
        """Return the facts of the files that programs have read, and of those `stated`.

        Of a file that changed since this process started they never hold: it is not known which
        content was read.
        """
        facts = facts_of([*self._paths(), *stated])
        return {
            path: replace(fact, sha256="") if fact.modified_ns >= self._since_ns else fact
            for path, fact in facts.items()
        }

    def _paths(self) -> list[Path]:
        from pelton.aot.spec.locations import is_user_file

        modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        names = {os.path.abspath(name) for name in (*modules, *self._opened) if name}
        return [
            path
            for path in sorted(map(Path, names))
            if is_user_file(str(path))
            and not str(path).startswith(_SYSTEM)
            and _INSTALLED.isdisjoint(path.parts)
            and path.is_file()
        ]

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or self._thread != threading.get_ident():
            return
        name, _, flags = arguments
        if isinstance(name, (str, bytes, os.PathLike)) and not (flags or 0) & _WRITES:
            self._opened.add(os.path.abspath(os.fsdecode(name)))
