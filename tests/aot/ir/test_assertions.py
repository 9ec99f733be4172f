"""Assertions in modules: a branch that fails with a status and a message."""

from __future__ import annotations

from iree.compiler.dialects import func
from iree.compiler.ir import FunctionType, InsertionPoint, IntegerType, Location

from pelton.aot.ir.assertions import emit_requirement
from pelton.aot.ir.module import new_module, operations_within


def test_the_failure_stands_in_the_branch_of_the_negated_condition() -> None:
    module = new_module("m")
    with module.context, Location.unknown(), InsertionPoint(module.regions[0].blocks[0]):
        function = func.FuncOp("f", FunctionType.get([IntegerType.get_signless(1)], []))
        block = function.add_entry_block()
        with InsertionPoint(block):
            emit_requirement(block.arguments[0], 'size "n" is wrong')
            func.ReturnOp([])
    assert module.verify()
    assert [op.name for op in operations_within(function.operation)] == [
        "arith.constant", "arith.xori", "arith.constant", "util.status.check_ok", "scf.yield",
        "scf.if", "func.return", "func.func",
    ]  # fmt: skip
    (negated,) = operations_within(module, "arith.xori")
    assert negated.operands[0] == block.arguments[0]
    (branch,) = operations_within(module, "scf.if")
    assert branch.operands[0] == negated.result and len(branch.regions[1].blocks) == 0
    (check,) = operations_within(module, "util.status.check_ok")
    assert check.attributes["message"].value == 'size "n" is wrong'
    assert check.operands[0].owner.attributes["value"].value == 11
