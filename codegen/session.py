"""One compile with IREE in this process, by a session of its own."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iree.compiler.api import Invocation, Output, Session, Source, ctypes_dl

from .changes import Changes

_SEVERITIES = ("note", "warning", "error", "remark")
_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p
)
_STARTUP_LOCK = threading.Lock()


class CompilerFailed(Exception):
    """The compiler refused a module; `diagnostics` is all that it said."""

    def __init__(self, diagnostics: str) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


class CompilerTimedOut(Exception):
    """The compiler was ended, as it took longer than it may; nobody knows what it would say."""


def compile_file(
    source: Path, target: Path, flags: Sequence[str], changes: Changes | None = None
) -> None:
    """Compile an MLIR file to VM bytecode in this process.

    Args:
        source: The module, text or bytecode; it is mapped, not copied.
        target: The file to write.
        flags: Flags of `iree-compile` that belong to a session.
        changes: What to change on the way; None: nothing.

    Raises:
        CompilerFailed: The compiler refused a flag or the module.
    """
    with _STARTUP_LOCK:  # the library initialises itself on the first session
        session = Session()
    said: list[str] = []
    try:
        session.set_flags(*flags)
        with session.invocation() as invocation:
            keep = _listen(invocation, said)
            compile_with(session, invocation, source, target, changes)
            del keep
    except (CompilerFailed, ValueError) as error:
        raise CompilerFailed("\n".join([*said, *filter(None, [str(error)])])) from error
    finally:
        session.close()


def compile_with(
    session: Session,
    invocation: Invocation,
    source: Path,
    target: Path,
    changes: Changes | None,
) -> None:
    """Compile an MLIR file with a session that has its flags.

    Args:
        session: The session.
        invocation: The session's invocation, which tells its diagnostics to whom it may concern.
        source: The module.
        target: The file to write.
        changes: What to change on the way; None: nothing.

    Raises:
        CompilerFailed: The compiler refused the module.
    """
    module_op = reached = None
    if not invocation.parse_source(Source.open_file(session, str(source))):
        raise CompilerFailed("")
    for phase, change in changes.by_phase() if changes else ():
        if phase != reached:
            _set_phase(invocation, "To", phase)
            _execute(invocation)
            _set_phase(invocation, "From", phase)
            reached = phase
        if module_op is None:
            context = session.context  # which owns the module from now on
            module_op = invocation.export_module()
            invocation.import_module(module_op)
            assert context == module_op.context
        change(module_op.operation)
    _set_phase(invocation, "To", "end")
    _execute(invocation)
    output = Output.open_file(str(target))
    invocation.output_vm_bytecode(output)
    output.keep()
    output.close()


def _execute(invocation: Invocation) -> None:
    if not invocation.execute():
        raise CompilerFailed("")


def _set_phase(invocation: Invocation, which: str, name: str) -> None:
    """Set the phase at whose end a compile begins (`From`) or ends (`To`)."""
    function = getattr(ctypes_dl._dylib, f"ireeCompilerInvocationSetCompile{which}Phase")
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_char_p], None
    function(invocation._inv_p, name.encode())


def _listen(invocation: Invocation, said: list[str]) -> Any:
    """Collect diagnostics into `said`; return what must live as long as the invocation."""

    def on_diagnostic(severity: int, text: Any, length: int, _: Any) -> None:
        message = ctypes.string_at(text, length).decode(errors="replace")
        said.append(f"{_SEVERITIES[severity % 4]}: {message}")

    callback = _CALLBACK(on_diagnostic)
    enable = getattr(ctypes_dl._dylib, "ireeCompilerInvocationEnableCallbackDiagnostics", None)
    if enable is None:
        invocation.enable_console_diagnostics()
        return None
    enable(ctypes.c_void_p(invocation._inv_p), ctypes.c_int(0), callback, None)
    return callback
