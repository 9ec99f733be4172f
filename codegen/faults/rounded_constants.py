"""Numbers that are rounded to a narrower type, where they are constants: rounded here.

MLIR folds `arith.truncf` of a constant only if nothing is lost. The step of `torch.arange(0., 1.,
0.1)` or the scale of a quantized tensor is then rounded on the host, whose virtual machine (IREE
3.13) cannot: «failed to legalize operation 'arith.truncf'».
"""

from __future__ import annotations

from iree.compiler.ir import FloatAttr, InsertionPoint, Operation, OpResult

from ..emission import create
from ..linalg import operations_in


def round_constants(module_op: Operation) -> None:
    """Replace each constant that is rounded to a narrower type by the nearest number of that type.

    Args:
        module_op: A module at the end of the phase `input`; changed in place.
    """
    for rounding in operations_in(module_op, "arith.truncf"):
        source = rounding.operands[0]
        if not isinstance(source, OpResult) or source.owner.name != "arith.constant":
            continue
        number = source.owner.attributes["value"]
        if not isinstance(number, FloatAttr):
            continue
        kind = rounding.result.type
        with InsertionPoint(rounding), rounding.location:
            nearest = FloatAttr.get(kind, number.value)
            rounded = create("arith.constant", kind, [], {"value": nearest})
        rounding.result.replace_all_uses_with(rounded)
        rounding.erase()
