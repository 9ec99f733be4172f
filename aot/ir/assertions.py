"""Assertions in a module: checks at run time that stop the program with a message."""

from __future__ import annotations

from iree.compiler.dialects import arith, util
from iree.compiler.ir import Block, InsertionPoint, IntegerType, Operation, Value

OUT_OF_RANGE = 11
"""The status code of IREE for a value that is out of its range."""


def emit_requirement(condition: Value, message: str) -> None:
    """Emit, at the current place, a check that stops the program unless a bool is true.

    The failure stands in a branch: as the operand of a check without one, a condition that IREE
    finds to be always true is an error of the compiler.

    Args:
        condition: A value of type i1.
        message: What is wrong otherwise.
    """
    wrong = arith.xori(condition, arith.constant(IntegerType.get_signless(1), 1))
    branch = Operation.create("scf.if", operands=[wrong], regions=2)
    with InsertionPoint(Block.create_at_start(branch.regions[0], [])):
        code = arith.constant(IntegerType.get_signless(32), OUT_OF_RANGE)
        util.StatusCheckOkOp(code, message=message)
        Operation.create("scf.yield")
