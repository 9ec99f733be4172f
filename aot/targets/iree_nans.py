"""NaN kept by the operations for which IREE's code takes it for any number.

A comparison with NaN is false, so that code of the form «x if x > y else y» gives y. torch's
operations give NaN where an argument is one.
"""

from __future__ import annotations

from iree.compiler.ir import Operation

from ..mlir_module import operations_within
from .iree_emission import FLOATS, Emitter, tensor_type

_LOSES = {
    f"torch.aten.{name}"
    for name in (
        "clamp", "clamp.Tensor", "clamp_max", "clamp_max.Tensor", "clamp_min", "clamp_min.Tensor",
        "hardshrink", "hardtanh", "maximum", "minimum", "relu6", "threshold",
    )
}  # fmt: skip
"""The operations that lose a NaN of their first operand; those of the second they keep."""


def keep_nans(module_op: Operation) -> None:
    """Let operations of a module, in the torch dialect, give NaN where they are given one."""
    for op in operations_within(module_op):
        if op.name in _LOSES and tensor_type(op.operands[0].type)[1] in FLOATS:
            _keep(op)


def _keep(op: Operation) -> None:
    emit = Emitter(op, after=True)
    given, result = op.operands[0], op.result
    shape = str(given.type).rpartition(",")[0]
    is_nan = emit.make("aten.isnan", f"{shape},i1>", given)
    kept = emit.make("aten.where.self", str(result.type), is_nan, given, result)
    result.replace_all_uses_except(kept, kept.owner.operation)
