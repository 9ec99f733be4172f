"""Loaders of compiled artifacts by kind of file. Each engine is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..files import FileKind
from .engine import LoadedModule

Loader = Callable[[Path, str | Sequence[str] | None, Any, bool], LoadedModule]
"""Loads one kind of file: path, device, parameters, and whether unused ones are accepted."""


def _load_vmfb(*args: Any) -> LoadedModule:
    from .iree import load_vmfb

    return load_vmfb(*args)


def _load_trtm(*args: Any) -> LoadedModule:
    from .trtm_loader import load_trtm

    return load_trtm(*args)


LOADERS: dict[FileKind, Loader] = {FileKind.VMFB: _load_vmfb, FileKind.TRTM: _load_trtm}
"""The loader of each kind of compiled artifact."""
