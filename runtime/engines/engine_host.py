"""Engine host: the device, state, weights and log that the engine functions of a package share."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from ..artifacts.entry_points import Port
from ..device.cuda import Block, Gpu


class DoubleBuffer:
    """A piece of state on the device: engines read `current` and write `spare`.

    Args:
        current: Memory with its value.
        spare: Memory of the same size for the next value.
    """

    def __init__(self, current: Block, spare: Block) -> None:
        self.current = current
        self.spare = spare

    def swap(self) -> None:
        """Make the value that was written the current one."""
        self.current, self.spare = self.spare, self.current


class EngineLog:
    """The last errors that an engine library told, for messages of ours."""

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=4)

    def add(self, line: str) -> None:
        """Keep a line."""
        self._lines.append(" ".join(line.split()))

    def reason(self) -> str:
        """Return what was told since the last time, to be appended to a message."""
        lines = list(self._lines)
        self._lines.clear()
        return f": {'; '.join(lines)}"[:600] if lines else ""


class EngineHost(Protocol):
    """The module that an engine function belongs to, as the function sees it."""

    @property
    def path(self) -> Path:
        """The package."""

    @property
    def gpu(self) -> Gpu:
        """The device."""

    @property
    def stream(self) -> int:
        """The handle of the module's own stream."""

    @property
    def state(self) -> Mapping[str, DoubleBuffer]:
        """The state by name."""

    @property
    def log(self) -> EngineLog:
        """The errors of the engine library."""

    def address(self, port: Port) -> int:
        """Return where an input that is not the caller's lies on the device."""

    def in_order(self, stream: int) -> AbstractContextManager[None]:
        """Work on state on a stream: after all earlier work on it, and before all later."""
