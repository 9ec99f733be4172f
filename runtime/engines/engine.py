"""Engine interface: the loaded module and the functions that `Executable` calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ..artifacts.manifest import Manifest
from ..artifacts.vmfb import VmfbInfo
from ..call.signature import Signature

Run = Callable[[Sequence[Any]], list[Any]]
"""A function of an artifact: takes checked input leaves, returns one value per result leaf."""


class LoadedModule(Protocol):
    """An artifact that an engine has loaded onto a device."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def info(self) -> VmfbInfo | Manifest:
        """The metadata of the file."""

    @property
    def device_names(self) -> str:
        """The user's names of the devices, separated by commas."""

    @property
    def stream(self) -> int | None:
        """The handle of the CUDA stream that calls run on; None where there is none to share."""

    def signatures(self) -> dict[str, Signature]:
        """Return the signature of each entry point and state accessor, by name."""

    def function(self, signature: Signature, stateful: bool) -> Run:
        """Return the function of a signature; calls of a stateful module are serialised."""

    def reset(self) -> None:
        """Reset the state to its initial value."""

    def copy_to(self, target: BinaryIO) -> None:
        """Write the bytes of the file."""
