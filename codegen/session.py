"""Compiler sessions: one compile with IREE in this process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iree.compiler.api import Invocation, Output, Session, Source

from .compat import call_with_diagnostics, set_first_phase, set_last_phase
from .errors import CompilerFailed
from .passes import STREAM_TENSORS, PhasePasses

_SEVERITIES = ("note", "warning", "error", "remark")
_TO_STREAM_TENSORS = "iree-stream-tensor-transformation-pipeline"
"""The first part of the phase `stream`, which changes nothing when the phase runs it again."""

_STARTUP_LOCK = threading.Lock()


def compile_file(
    source: Path, target: Path, flags: Sequence[str], passes: PhasePasses | None = None
) -> None:
    """Compile an MLIR file to VM bytecode in this process.

    Args:
        source: The module, text or bytecode; it is mapped, not copied.
        target: The file to write.
        flags: Flags of `iree-compile` that belong to a session.
        passes: The passes to run between the phases; None: none.

    Raises:
        CompilerFailed: The compiler refused a flag or the module.
    """
    with _STARTUP_LOCK:  # the library initialises itself on the first session
        session = Session()
    diagnostics: list[str] = []
    try:
        session.set_flags(*flags)
        with session.invocation() as invocation:
            callback = _collect_diagnostics(invocation, diagnostics)
            compile_with(session, invocation, source, target, passes)
            del callback
    except (CompilerFailed, ValueError) as error:
        raise CompilerFailed("\n".join([*diagnostics, *filter(None, [str(error)])])) from error
    finally:
        session.close()


def compile_with(
    session: Session,
    invocation: Invocation,
    source: Path,
    target: Path,
    passes: PhasePasses | None,
) -> None:
    """Compile an MLIR file with a session that has its flags.

    Args:
        session: The session.
        invocation: The session's invocation, which reports its diagnostics already.
        source: The module.
        target: The file to write.
        passes: The passes to run between the phases; None: none.

    Raises:
        CompilerFailed: The compiler refused the module.
    """
    if not invocation.parse_source(Source.open_file(session, str(source))):
        raise CompilerFailed("")
    if passes is not None:
        _run_passes(session, invocation, passes)
    set_last_phase(invocation, "end")
    _execute(invocation)
    output = Output.open_file(str(target))
    invocation.output_vm_bytecode(output)
    output.keep()
    output.close()


def _run_passes(session: Session, invocation: Invocation, passes: PhasePasses) -> None:
    """Compile up to the last phase that a pass runs after, and run the passes on the way."""
    module_op = reached = None
    for phase, run in passes.pipeline():
        if phase != reached:
            _execute_to(invocation, phase)
            reached = phase
        if module_op is None:
            context = session.context  # owns the module from now on
            module_op = invocation.export_module()
            invocation.import_module(module_op)
            assert context == module_op.context
        run(module_op.operation)


def _execute_to(invocation: Invocation, phase: str) -> None:
    """Compile up to the end of a phase, from which the next call goes on."""
    last = "flow" if phase == STREAM_TENSORS else phase
    set_last_phase(invocation, last)
    _execute(invocation)
    set_first_phase(invocation, last)
    if phase == STREAM_TENSORS and not invocation.execute_text_pass_pipeline(_TO_STREAM_TENSORS):
        raise CompilerFailed("")


def _execute(invocation: Invocation) -> None:
    if not invocation.execute():
        raise CompilerFailed("")


def _collect_diagnostics(invocation: Invocation, diagnostics: list[str]) -> Any:
    """Append diagnostics to a list; return the callback, which must outlive the invocation."""

    def report(severity: int, message: str) -> None:
        diagnostics.append(f"{_SEVERITIES[severity % 4]}: {message}")

    return call_with_diagnostics(invocation, report)
