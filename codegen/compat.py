"""Private names of the IREE compiler's Python API: nothing else of this package uses one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from iree.compiler.api import Invocation, ctypes_dl

_DIAGNOSTIC = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p
)


def compile_tool() -> Path:
    """Return the path of `iree-compile`.

    Example:
        >>> compile_tool().is_file()
        True
    """
    return Path(ctypes_dl.__file__).parent.parent / "_mlir_libs" / "iree-compile"


def initialize(*arguments: str) -> None:
    """Set the flags of the whole process, those of MLIR and LLVM among them.

    Args:
        arguments: The program's name and its flags.
    """
    ctypes_dl._initializeGlobalCL(*arguments)


def set_first_phase(invocation: Invocation, name: str) -> None:
    """Let a compile begin after a phase, which the module has reached already."""
    _set_phase(invocation, "From", name)


def set_last_phase(invocation: Invocation, name: str) -> None:
    """Let a compile end after a phase."""
    _set_phase(invocation, "To", name)


def _set_phase(invocation: Invocation, which: str, name: str) -> None:
    function = getattr(ctypes_dl._dylib, f"ireeCompilerInvocationSetCompile{which}Phase")
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_char_p], None
    function(invocation._inv_p, name.encode())


def call_with_diagnostics(invocation: Invocation, report: Callable[[int, str], None]) -> Any:
    """Call a function with the severity and the text of each diagnostic of an invocation.

    Args:
        invocation: The invocation.
        report: Takes a severity (0: note, 1: warning, 2: error, 3: remark) and a text.

    Returns:
        What must live as long as the invocation; None where the library has no such callback, and
        diagnostics go to the console instead.
    """

    def on_diagnostic(severity: int, text: Any, length: int, _: Any) -> None:
        report(severity, ctypes.string_at(text, length).decode(errors="replace"))

    callback = _DIAGNOSTIC(on_diagnostic)
    enable = getattr(ctypes_dl._dylib, "ireeCompilerInvocationEnableCallbackDiagnostics", None)
    if enable is None:
        invocation.enable_console_diagnostics()
        return None
    enable(ctypes.c_void_p(invocation._inv_p), ctypes.c_int(0), callback, None)
    return callback
