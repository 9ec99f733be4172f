"""NaN kept by the operations for which IREE's code takes it for any number.

A comparison with NaN is false, so that code of the form «x if x > y else y» gives y. torch's
operations give NaN where an argument is one.
"""

from __future__ import annotations

import math

from iree.compiler.ir import Operation

from ....ir.module import operations_within
from .emission import FLOATS, Emitter, number_of, tensor_type, with_element

_LOSES = {
    f"torch.aten.{name}"
    for name in (
        "clamp", "clamp.Tensor", "clamp_max", "clamp_max.Tensor", "clamp_min", "clamp_min.Tensor",
        "hardshrink", "hardtanh", "maximum", "minimum", "relu6", "threshold",
    )
}  # fmt: skip
"""The operations that lose a NaN of their first operand; those of the second they keep."""

_FINDS = {f"torch.aten.{name}" for name in ("argmax", "argmin", "max.dim", "min.dim")}
"""The operations that pass over a NaN where they tell a place; their last result is the place."""

_POWER = "torch.aten.pow.Tensor_Scalar"


def keep_nans(module_op: Operation) -> None:
    """Let operations of a module, in the torch dialect, give NaN where torch's do."""
    for op in operations_within(module_op, *_LOSES, *_FINDS, _POWER):
        if tensor_type(op.operands[0].type)[1] not in FLOATS:
            continue
        if op.name in _LOSES:
            _keep(op)
        elif op.name in _FINDS:
            _find(op)
        elif op.name == _POWER and _is_fraction(number_of(op.operands[1])):
            _raise_from_the_end(op)


def _keep(op: Operation) -> None:
    emit = Emitter(op, after=True)
    given, result = op.operands[0], op.result
    is_nan = emit.make("aten.isnan", with_element(given.type, "i1"), given)
    kept = emit.make("aten.where.self", str(result.type), is_nan, given, result)
    result.replace_all_uses_except(kept, kept.owner.operation)


def _find(op: Operation) -> None:
    """Let an operation tell the place of the first NaN where there is one."""
    emit = Emitter(op, after=True)
    given, dim, keep = op.operands
    place = op.results[len(op.results) - 1]
    is_nan = emit.make("aten.isnan", with_element(given.type, "i1"), given)
    if str(dim.type) == "!torch.none":
        found = emit.make("aten.any", "!torch.vtensor<[],i1>", is_nan)
    else:
        found = emit.make("aten.any.dim", with_element(place.type, "i1"), is_nan, dim, keep)
    first = emit.make("aten.argmax", str(place.type), emit.converted(is_nan, "si32"), dim, keep)
    kept = emit.make("aten.where.self", str(place.type), found, first, place)
    place.replace_all_uses_except(kept, kept.owner.operation)


def _is_fraction(exponent: float | None) -> bool:
    """Return whether a power has a fraction; for 1/2 and -1/2 torch takes square roots."""
    if exponent is None or abs(exponent) == 0.5:
        return False
    return not float(exponent).is_integer()


def _raise_from_the_end(power: Operation) -> None:
    """Let minus infinity to the power of a fraction be that of infinity, which is no NaN."""
    emit = Emitter(power)
    base = power.operands[0]
    kind = with_element(base.type, "i1")
    is_end = emit.make("aten.eq.Scalar", kind, base, emit.real(-math.inf))
    opposite = emit.scaled(base, -1.0)
    power.operands[0] = emit.make("aten.where.self", str(base.type), is_end, opposite, base)
