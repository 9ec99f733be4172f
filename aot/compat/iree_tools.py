"""Command-line tools in the package of the IREE compiler."""

from __future__ import annotations

from pathlib import Path

from iree.compiler.api import ctypes_dl


def opt_tool() -> Path:
    """Return the path of `iree-opt`, which reads and writes MLIR.

    Example:
        >>> opt_tool().is_file()
        True
    """
    return Path(ctypes_dl.__file__).parent.parent / "_mlir_libs" / "iree-opt"
