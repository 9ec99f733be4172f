"""One compile with IREE in this process, by a session of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iree.compiler.api import Invocation, Output, Session, Source

from .compat import call_with_diagnostics, set_first_phase, set_last_phase
from .errors import CompilerFailed
from .passes import Changes

_SEVERITIES = ("note", "warning", "error", "remark")
_STARTUP_LOCK = threading.Lock()


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
            set_last_phase(invocation, phase)
            _execute(invocation)
            set_first_phase(invocation, phase)
            reached = phase
        if module_op is None:
            context = session.context  # which owns the module from now on
            module_op = invocation.export_module()
            invocation.import_module(module_op)
            assert context == module_op.context
        change(module_op.operation)
    set_last_phase(invocation, "end")
    _execute(invocation)
    output = Output.open_file(str(target))
    invocation.output_vm_bytecode(output)
    output.keep()
    output.close()


def _execute(invocation: Invocation) -> None:
    if not invocation.execute():
        raise CompilerFailed("")


def _listen(invocation: Invocation, said: list[str]) -> Any:
    """Collect diagnostics into `said`; return what must live as long as the invocation."""

    def report(severity: int, message: str) -> None:
        said.append(f"{_SEVERITIES[severity % 4]}: {message}")

    return call_with_diagnostics(invocation, report)
