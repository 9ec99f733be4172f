"""Powers of tensors by tensors, right for all numbers.

IREE computes x^y as exp(y log(x)), which is NaN where x is negative, and for 0^0 and 1^inf.
"""

from __future__ import annotations

import math

from iree.compiler.ir import F64Type, FloatAttr, Operation, Value, WalkResult

from .iree_emission import FLOATS, Emitter, tensor_type

_POWER = "torch.aten.pow.Tensor_Tensor"


def mend_powers(module_op: Operation) -> None:
    """Let powers of a module, in the torch dialect, give what torch's do."""
    found: list[Operation] = []

    def visit(op: Operation) -> WalkResult:
        if op.name == _POWER:
            found.append(op)
        return WalkResult.ADVANCE

    module_op.walk(visit)
    for op in found:
        base, exponent = op.operands
        if tensor_type(base.type)[1] == tensor_type(exponent.type)[1] in FLOATS:
            op.result.replace_all_uses_with(_power(_Emitter(op), base, exponent))
            op.erase()


class _Emitter(Emitter):
    """Makes what a power is computed from; results are typed as one of the operands is."""

    def __init__(self, op: Operation) -> None:
        super().__init__(op)
        self.kind = str(op.result.type)

    def power(self, base: Value, exponent: Value) -> Value:
        return self.make("aten.pow.Tensor_Tensor", self.kind, base, exponent)

    def like(self, name: str, value: Value, *more: Value) -> Value:
        return self.make(f"aten.{name}", str(value.type), value, *more)

    def asked(self, name: str, value: Value, *more: Value) -> Value:
        return self.make(f"aten.{name}", _of_bools(str(value.type)), value, *more)

    def choose(self, condition: Value, one: Value, other: Value, overload: str = "self") -> Value:
        return self.make(f"aten.where.{overload}", self.kind, condition, one, other)

    def real(self, value: float) -> Value:
        with self._location.context, self._location:
            attribute = FloatAttr.get(F64Type.get(), value)
        return self.make("constant.float", "!torch.float", value=attribute)


def _of_bools(kind: str) -> str:
    return f"{kind.rpartition(',')[0]},i1>"


def _power(emit: _Emitter, base: Value, exponent: Value) -> Value:
    """Return the power of |x|, with the sign that whole exponents give it."""
    zero, one, half = emit.real(0.0), emit.real(1.0), emit.real(0.5)
    size = emit.like("abs", base)
    power = emit.power(size, exponent)
    power = emit.choose(emit.asked("eq.Scalar", exponent, zero), one, power, "ScalarSelf")
    power = emit.choose(emit.asked("eq.Scalar", size, one), one, power, "ScalarSelf")
    halved = emit.like("mul.Scalar", exponent, half)
    is_whole = emit.asked("eq.Tensor", exponent, emit.like("floor", exponent))
    is_even = emit.asked("eq.Tensor", halved, emit.like("floor", halved))
    opposite = emit.make("aten.neg", emit.kind, power)
    signed = emit.choose(is_even, power, opposite)
    of_negative = emit.choose(is_whole, signed, emit.real(math.nan), "ScalarOther")
    return emit.choose(emit.asked("lt.Scalar", base, zero), of_negative, power)
