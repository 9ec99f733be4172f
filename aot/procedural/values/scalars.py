"""Scalars of a traced procedure: integers, bools, floats and sizes known at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from iree.compiler.ir import Type, Value

from ...spec.sizes import is_static
from . import arithmetic
from .affine import Affine
from .arithmetic import is_number
from .intrinsics import Intrinsic
from .services import TraceServices


def _operator(symbol: str) -> Callable[[IrScalar, Any], Any]:
    def method(self: IrScalar, other: Any) -> Any:
        return self._binary(symbol, other, reflected=False)

    return method


def _reflected(symbol: str) -> Callable[[IrScalar, Any], Any]:
    def method(self: IrScalar, other: Any) -> Any:
        return self._binary(symbol, other, reflected=True)

    return method


class IrScalar(Intrinsic):
    """A traced scalar: an integer, a bool or a floating-point number.

    Operators promote as those of torch's 0-d tensors: a Python number takes the type of the other
    operand; an integer with a float becomes a float; `/` of integers is a float32, `//` and `%`
    round down as in Python; comparisons return bools for `aot.cond` and `aot.while_loop`.

    Args:
        ir_type: Its type in the module.
    """

    def __init__(self, ir_type: Type) -> None:
        super().__init__()
        self.ir_type = ir_type

    @property
    def kind(self) -> str:
        """Its type as text, such as `i64`, `index`, `f32`; bool is `i1`."""
        return str(self.ir_type)

    @property
    def dtype(self) -> torch.dtype:
        """The element type of its rank-0 tensor."""
        return arithmetic.DTYPE_OF_KIND[self.kind]

    def affine(self) -> Affine:
        """Return its affine form in other integers, for differences known while tracing."""
        return Affine.of(self.ir_value)

    def set(self, other: Any) -> None:
        """Replace its value by a Python number, or by a traced scalar of the same type.

        Raises:
            ProcedureTraceError: `other` is of another type.
        """
        raise NotImplementedError

    def to(self, dtype: torch.dtype) -> IrScalar:
        """Return the scalar converted to a torch element type.

        Floats are truncated towards zero.

        Raises:
            ProcedureTraceError: There are no scalars of the element type.
        """
        trace = self.trace
        if dtype not in arithmetic.KIND_OF_DTYPE:
            trace.fail(f"there are no scalars of type {dtype}; make a tensor of it")
        with trace.emitting():
            return IrImmediateScalar(
                arithmetic.convert(self.ir_value, arithmetic.KIND_OF_DTYPE[dtype])
            )

    def clamp(self, min: Any = None, max: Any = None) -> IrScalar:
        """Return the scalar clamped to a range, whose bounds may be traced."""
        trace = self.trace
        result: IrScalar = self
        for bound, symbol in ((min, "<"), (max, ">")):
            if bound is not None:
                with trace.emitting():
                    limit = arithmetic.convert(scalar_value(trace, bound, self.kind), self.kind)
                    beyond = arithmetic.emit_binary(symbol, result.ir_value, limit)
                    value = arithmetic.select(beyond, limit, result.ir_value)
                    result = IrImmediateScalar(value)
        return result

    def _binary(self, symbol: str, other: Any, *, reflected: bool) -> Any:
        if not isinstance(other, IrScalar) and not is_number(other):
            return NotImplemented
        trace = self.trace
        with trace.emitting():
            left = self.ir_value
            right = scalar_value(trace, other, self.kind)
            if reflected:
                left, right = right, left
            try:
                value = arithmetic.emit_binary(symbol, left, right)
            except TypeError as error:
                trace.fail(str(error))
            return IrImmediateScalar(value, self._affine_result(symbol, other, reflected))

    def _affine_result(self, symbol: str, other: Any, reflected: bool) -> Affine | None:
        """Return the affine form of a sum or difference of integers; None for other results."""
        is_scalar = isinstance(other, IrScalar)
        if symbol not in ("+", "-") or not (is_scalar or type(other) is int):
            return None
        if arithmetic.is_float(self.kind) or (is_scalar and arithmetic.is_float(other.kind)):
            return None
        mine, theirs = self.affine(), other.affine() if is_scalar else Affine.number(other)
        if symbol == "+":
            return mine + theirs
        return theirs - mine if reflected else mine - theirs

    def _unary(self, symbol: str) -> IrScalar:
        trace = self.trace
        with trace.emitting():
            try:
                return IrImmediateScalar(arithmetic.emit_unary(symbol, self.ir_value))
            except TypeError as error:
                trace.fail(str(error))

    def __neg__(self) -> IrScalar:
        return self._unary("-")

    def __invert__(self) -> IrScalar:
        return self._unary("~")

    def __abs__(self) -> IrScalar:
        return self._unary("abs")

    def __pos__(self) -> IrScalar:
        return self

    __add__, __radd__ = _operator("+"), _reflected("+")
    __sub__, __rsub__ = _operator("-"), _reflected("-")
    __mul__, __rmul__ = _operator("*"), _reflected("*")
    __truediv__, __rtruediv__ = _operator("/"), _reflected("/")
    __floordiv__, __rfloordiv__ = _operator("//"), _reflected("//")
    __mod__, __rmod__ = _operator("%"), _reflected("%")
    __pow__, __rpow__ = _operator("**"), _reflected("**")
    __and__, __rand__ = _operator("&"), _reflected("&")
    __or__, __ror__ = _operator("|"), _reflected("|")
    __xor__, __rxor__ = _operator("^"), _reflected("^")
    __lshift__, __rlshift__ = _operator("<<"), _reflected("<<")
    __rshift__, __rrshift__ = _operator(">>"), _reflected(">>")
    __lt__, __le__, __gt__, __ge__ = (_operator(s) for s in ("<", "<=", ">", ">="))
    __eq__ = _operator("==")  # type: ignore[assignment]
    __ne__ = _operator("!=")  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<traced {self.kind}>"


class IrImmediateScalar(IrScalar):
    """A scalar that is the result of an operation, or an argument.

    Args:
        ir_value: The value in the module.
        affine: Its affine form in other integers, if known.
    """

    def __init__(self, ir_value: Value, affine: Affine | None = None) -> None:
        super().__init__(ir_value.type)
        self._value = ir_value
        if affine is not None:
            self._trace.affine_forms[ir_value] = affine

    def resolve_ir_values(self, proc_trace: TraceServices) -> Sequence[Value]:
        """Return the value."""
        return [self._value]

    def affine(self) -> Affine:
        """Return its affine form in other integers, for differences known while tracing."""
        return self._trace.affine_forms.get(self._value) or Affine.of(self._value)

    def set(self, other: Any) -> None:
        """Refer to another value from now on: a Python number, or a traced scalar of its type.

        Raises:
            ProcedureTraceError: `other` is of another type, or this is an outer region's scalar.
        """
        trace = self.trace
        if self._scope is not trace.scope:
            trace.fail(f"{self!r} was made outside of this loop body or branch; carry it instead")
        self._value = scalar_of_type(trace, other, self.kind, repr(self))


Size: TypeAlias = int | IrScalar
"""A size of a traced tensor: a Python integer where it is static, else a traced scalar."""


def same_size(left: Size, right: Size) -> bool:
    """Return whether two sizes are known to be equal while tracing."""
    if is_static(left) or is_static(right):
        return is_static(left) and is_static(right) and left == right
    return (left.affine() - right.affine()).constant == 0


def dim_value_or_none(trace: TraceServices, value: Any) -> IrScalar | None:
    """Return a value as a traced scalar if it is known to be the size of a tensor, else None."""
    return IrImmediateScalar(value) if value in trace.dim_values else None


def scalar_of(trace: TraceServices, value: Any) -> IrScalar:
    """Return a Python number or a traced scalar as a traced scalar.

    Raises:
        ProcedureTraceError: `value` is something else.
    """
    if isinstance(value, IrScalar):
        return value
    with trace.emitting():
        return IrImmediateScalar(scalar_value(trace, value, None))


def scalar_value(trace: TraceServices, value: Any, beside: str | None) -> Value:
    """Return a scalar as a value; a Python number takes the kind of the operand beside it.

    Args:
        trace: The procedure.
        value: A Python number or a traced scalar.
        beside: The kind of the other operand; None: there is none.

    Raises:
        ProcedureTraceError: `value` is no number, or too large for its kind.
    """
    if isinstance(value, IrScalar):
        return value.ir_value
    if not is_number(value):
        trace.fail(f"expected a number, got {value!r}")
    kind = arithmetic.kind_of_literal(value, beside)
    try:
        return arithmetic.constant(value, kind)
    except OverflowError as error:
        trace.fail(str(error))


def scalar_of_type(trace: TraceServices, value: Any, kind: str, where: str) -> Value:
    """Return a scalar as a value of a kind, which it must fit without loss.

    Args:
        trace: The procedure.
        value: A Python number, or a traced scalar of the kind or of a smaller integer kind.
        kind: The kind that is needed.
        where: The use of the value, for messages.

    Raises:
        ProcedureTraceError: `value` is of another kind.
    """
    if isinstance(value, IrScalar):
        if value.kind != kind and not arithmetic.holds(kind, value.kind):
            trace.fail(f"{where} takes {kind}, got {value!r}; convert it with .to(dtype)")
        with trace.emitting():
            return arithmetic.convert(value.ir_value, kind)
    lossy = isinstance(value, float) and not arithmetic.is_float(kind)
    mixed = isinstance(value, bool) != (kind == "i1") and isinstance(value, (bool, int))
    if not is_number(value) or lossy or mixed:
        trace.fail(f"{where} takes {kind}, got {value!r}")
    with trace.emitting():
        return scalar_value(trace, value, kind)


def index_scalar(trace: TraceServices, value: Any) -> IrScalar:
    """Return an integer, traced or not, as a traced scalar of type index.

    Raises:
        ProcedureTraceError: `value` is no integer.
    """
    scalar = scalar_of(trace, value)
    if arithmetic.is_float(scalar.kind) or scalar.kind == "i1":
        trace.fail(f"a size or position is an integer, not {scalar!r}")
    if scalar.kind == "index":
        return scalar
    with trace.emitting():
        return IrImmediateScalar(arithmetic.convert(scalar.ir_value, "index"), scalar.affine())


def select(trace: TraceServices, condition: IrScalar, yes: Size, no: Size) -> IrScalar:
    """Return one of two numbers, by a traced bool.

    Args:
        trace: The procedure.
        condition: The bool.
        yes: The result where it is true.
        no: The result where it is false; of the kind of `yes` if both are traced.
    """
    with trace.emitting():
        kind = next((s.kind for s in (yes, no) if isinstance(s, IrScalar)), "index")
        values = [arithmetic.convert(scalar_value(trace, s, kind), kind) for s in (yes, no)]
        return IrImmediateScalar(arithmetic.select(condition.ir_value, *values))
