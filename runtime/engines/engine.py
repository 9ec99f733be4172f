"""What `Executable` asks of an engine: one file for each implements it, `loaders` lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ..artifacts.manifest import Manifest
from ..artifacts.vmfb import VmfbInfo
from ..call.signature import Signature

Run = Callable[[Sequence[Any]], list[Any]]
"""A function of an artifact: from checked input leaves to one value for each leaf of the result."""


class LoadedModule(Protocol):
    """An artifact that an engine has loaded onto a device."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def info(self) -> VmfbInfo | Manifest:
        """What the file says of itself."""

    @property
    def device_names(self) -> str:
        """What users call the device; several are separated by commas."""

    @property
    def stream(self) -> int | None:
        """The handle of the CUDA stream that calls run on, where there is one to share."""

    def signatures(self) -> dict[str, Signature]:
        """Return the signature of each entry point and state accessor, by name."""

    def function(self, signature: Signature, stateful: bool) -> Run:
        """Return the function with `signature`; `stateful`: whether the module has state."""

    def reset(self) -> None:
        """Put the initial state back."""

    def copy_to(self, target: BinaryIO) -> None:
        """Write the bytes of the file."""
