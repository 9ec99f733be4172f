"""Divisors of sizes: a size of 0 that the host divides by, to compute another size.

IREE (3.13) recovers a size from the number of elements and the other sizes; for a tensor without
elements the quotient does not matter, but the division by 0 ends the process.
"""

from __future__ import annotations

from iree.compiler.ir import (
    InsertionPoint,
    IntegerAttr,
    Operation,
    OpResult,
    Value,
)

from ..emission import create
from ..linalg import operations_in

_DIVISIONS = tuple(
    f"arith.{name}"
    for name in ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")
)


def guard_divisions(module_op: Operation) -> None:
    """Divide by 1 where the host would divide by a size of 0.

    Args:
        module_op: A module at the end of the phase `hal`; changed in place.
    """
    for division in operations_in(module_op, *_DIVISIONS):
        divisor = division.operands[1]
        if not _is_safe(divisor):
            division.operands[1] = _at_least_one(division, divisor)


def _is_safe(divisor: Value) -> bool:
    """Return whether a divisor is a constant, or guarded already."""
    owner = divisor.owner.operation if isinstance(divisor, OpResult) else None
    return owner is not None and owner.name in ("arith.constant", "arith.maxui")


def _at_least_one(division: Operation, divisor: Value) -> Value:
    with division.location, InsertionPoint(division):
        value = {"value": IntegerAttr.get(divisor.type, 1)}
        one = create("arith.constant", divisor.type, [], value)
        return create("arith.maxui", divisor.type, [divisor, one])
