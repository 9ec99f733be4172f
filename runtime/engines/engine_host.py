"""Engine host: the device, state, weights and log that the engine functions of a package share."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from ..artifacts.entry_points import Port
from ..device.cuda import Gpu
from ..device.gpu_arrays import DoubleBuffer


class EngineLog:
    """The last errors that an engine library logged, for error messages."""

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=4)

    def add(self, line: str) -> None:
        """Add a line; only the last four are stored."""
        self._lines.append(" ".join(line.split()))

    def reason(self) -> str:
        """Return the errors since the last call, to be appended to a message."""
        lines = list(self._lines)
        self._lines.clear()
        return f": {'; '.join(lines)}"[:600] if lines else ""


class EngineHost(Protocol):
    """The services that an engine function asks of the module it belongs to."""

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
        """Return the device address of an input that the caller does not pass."""

    def in_order(self, stream: int) -> AbstractContextManager[None]:
        """Order work on state: after all that was enqueued before, on whichever stream."""
