"""Which trace is being made: the one thing that emitters without traced arguments cannot know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ...spec.locations import user_location
from .errors import ProcedureTraceError

if TYPE_CHECKING:
    from ..module.trace import IrTrace

_current: ContextVar[IrTrace | None] = ContextVar("ir_trace", default=None)


def current_ir_trace() -> IrTrace:
    """Return the trace of the procedure that is running.

    Raises:
        ProcedureTraceError: None is.

    Example:
        >>> try:
        ...     current_ir_trace()
        ... except ProcedureTraceError as error:
        ...     print(str(error).partition(";")[0])
        no procedure is being traced
    """
    trace = _current.get()
    if trace is None:
        raise ProcedureTraceError(
            "no procedure is being traced; this works only inside a method of a CompiledModule, "
            "while the class is exported",
            location=user_location(),
        )
    return trace


def ir_trace_or_none() -> IrTrace | None:
    """Return the trace of the procedure that is running, or None."""
    return _current.get()


@contextmanager
def new_ir_trace_scope(ir_trace: IrTrace | None) -> Iterator[IrTrace | None]:
    """Make a trace the current one for the `with` block; None: as if none were being made."""
    token = _current.set(ir_trace)
    try:
        yield ir_trace
    finally:
        _current.reset(token)
