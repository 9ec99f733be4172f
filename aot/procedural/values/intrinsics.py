"""Intrinsics: Python objects that stand for values of the compiled program during a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from iree.compiler.ir import Value

from ...spec.locations import user_location
from .current import current_ir_trace, ir_trace_or_none
from .errors import ProcedureTraceError
from .services import TraceServices


class Intrinsic:
    """An object that stands for values of the compiled program while a procedure is traced.

    It belongs to the trace in which it was made, and there to the region (loop body or branch).
    """

    def __init__(self) -> None:
        self._trace = current_ir_trace()
        self._scope = self._trace.scope

    @property
    def trace(self) -> TraceServices:
        """The trace that it belongs to, which must be the one being made.

        Raises:
            ProcedureTraceError: The value has left its procedure, loop body or branch.
        """
        if ir_trace_or_none() is not self._trace:
            raise ProcedureTraceError(
                f"{self!r} is a traced value of {self._trace.name}() and cannot be used outside "
                "of it; pass it as an argument, return it, or keep it in a mutable global",
                location=user_location(),
            )
        if not self._scope.encloses(self._trace.scope):
            self._trace.fail(
                f"{self!r} was made in a loop body or branch that has ended; return it from there "
                "to use it afterwards"
            )
        return self._trace

    def resolve_ir_values(self, proc_trace: TraceServices) -> Sequence[Value]:
        """Return its values, emitting what is needed to have them.

        Raises:
            NotImplementedError: It has none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no value")

    def resolve_call(self, proc_trace: TraceServices, *args: Any, **kwargs: Any) -> Any:
        """Emit a call of it.

        Raises:
            NotImplementedError: It cannot be called.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be called")

    def resolve_assignment(self, proc_trace: TraceServices, ir_values: Sequence[Value]) -> None:
        """Emit a store of values to it.

        Raises:
            ProcedureTraceError: It cannot be stored to.
        """
        proc_trace.fail(f"{self!r} cannot be assigned to; only mutable globals can")

    @property
    def ir_values(self) -> Sequence[Value]:
        """Its values, in the current trace."""
        return self.resolve_ir_values(self.trace)

    @property
    def ir_value(self) -> Value:
        """Its only value, in the current trace."""
        (value,) = self.ir_values
        return value

    def refuse(self, action: str, remedy: str) -> NoReturn:
        """Raise the error that Python cannot do something with a value that is not known yet.

        Raises:
            ProcedureTraceError: Always.
        """
        self.trace.fail(
            f"{action} needs a value that is known only when the program runs ({self!r}); {remedy}"
        )

    def __bool__(self) -> bool:
        self.refuse(
            "`if`, `while`, `and`, `or`, `not` or bool()",
            "use aot.cond or aot.while_loop, and `&`, `|`, `~` in conditions",
        )

    def __int__(self) -> int:
        self.refuse("int()", "use .to(torch.int64), or .item() of a tensor")

    def __float__(self) -> float:
        self.refuse("float()", "use .to(torch.float32), or .item() of a tensor")

    def __index__(self) -> int:
        self.refuse(
            "range(), or an index of a Python list,",
            "use aot.for_loop, or index a traced tensor",
        )


class EmptyType:
    """The type of what stands for "not given" where None is a value."""

    def __repr__(self) -> str:
        return "Empty"


class CallableIntrinsic(Intrinsic):
    """An intrinsic that may be called in a procedure."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Emit a call in the current trace."""
        return current_ir_trace().handle_call(self, args, kwargs)
