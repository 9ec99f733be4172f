"""Intrinsics: Python objects that represent values of the compiled program during a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from iree.compiler.ir import Value

from ...spec.locations import user_location
from .current import current_ir_trace, ir_trace_or_none
from .errors import ProcedureTraceError
from .services import TraceServices


class Intrinsic:
    """A Python object that represents values of the compiled program during a trace.

    It belongs to the trace in which it is created, and there to the region: the body, a loop body
    or a branch.
    """

    def __init__(self) -> None:
        self._trace = current_ir_trace()
        self._scope = self._trace.scope

    @property
    def trace(self) -> TraceServices:
        """The trace that it belongs to, which must be the current one.

        Raises:
            ProcedureTraceError: The value is used outside of its procedure, loop body or branch.
        """
        if ir_trace_or_none() is not self._trace:
            raise ProcedureTraceError(
                f"{self!r} is a traced value of {self._trace.name}() and cannot be used outside "
                "of it; pass it as an argument, return it, or store it in a mutable global",
                location=user_location(),
            )
        if not self._scope.encloses(self._trace.scope):
            self._trace.fail(
                f"{self!r} was made in a loop body or branch that has ended; return it from there "
                "to use it afterwards"
            )
        return self._trace

    def resolve_ir_values(self, proc_trace: TraceServices) -> Sequence[Value]:
        """Return its values, after emitting the operations that compute them.

        Raises:
            NotImplementedError: The class has no values.
        """
        raise NotImplementedError(f"{type(self).__name__} has no value")

    def resolve_call(self, proc_trace: TraceServices, *args: Any, **kwargs: Any) -> Any:
        """Emit a call of it.

        Args:
            proc_trace: The procedure that calls.
            args: Positional arguments.
            kwargs: Keyword arguments.

        Raises:
            NotImplementedError: The class cannot be called.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be called")

    def resolve_assignment(self, proc_trace: TraceServices, ir_values: Sequence[Value]) -> None:
        """Emit a store of values to it.

        Raises:
            ProcedureTraceError: It cannot be assigned to.
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
        """Raise the error for a Python operation that needs a value known only at run time.

        Args:
            action: The operation.
            remedy: An alternative that can be compiled.

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
    """The type of a placeholder for arguments that are not given, where None is a value."""

    def __repr__(self) -> str:
        return "Empty"


class CallableIntrinsic(Intrinsic):
    """An intrinsic that may be called in a procedure."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Emit a call in the current trace."""
        return current_ir_trace().handle_call(self, args, kwargs)
