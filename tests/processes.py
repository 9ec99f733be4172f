"""Which processes a command leaves behind: they inherit a mark in its environment."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class Mark:
    """A mark that a command and all its descendants carry."""

    text: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def environment(self) -> dict[str, str]:
        """An environment for the command, without the address of a cluster of Ray."""
        others = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
        return {**others, "PELTON_TEST_MARK": self.text}

    def processes(self) -> list[str]:
        """Return the command lines of those that run."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.text.encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().decode())
            except OSError:  # it ended meanwhile
                continue
        return found

    def assert_gone(self) -> None:
        """Wait until none runs any more; those that were told to end need a moment."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while left := self.processes():
            assert time.monotonic() < end, left
            time.sleep(0.1)
