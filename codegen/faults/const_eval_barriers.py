"""Const-eval barriers before reductions that IREE would miscompile while it evaluates constants.

IREE evaluates what depends on no input at compile time, by a nested compile in which no pass of
ours can run. Reductions over elements that may all fold to one constant, which IREE gets wrong
there (see `invariant_reductions`), are kept out of it by an optimization barrier and run with each
call. The barrier stands before the inputs, which are read only: IREE would update what is behind a
barrier in place.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler.ir import (
    ArrayAttr,
    Block,
    DenseElementsAttr,
    InsertionPoint,
    Operation,
    RankedTensorType,
    Value,
    WalkOrder,
    WalkResult,
)

from ..emission import DYNAMIC, create
from ..linalg import accumulated, body_of, inputs_of, is_reduction

_FOLDED_FOR_EQUAL_OPERANDS = frozenset(
    f"arith.{name}" for name in ("cmpi", "subi", "xori", "divsi", "divui")
)
"""Operations that fold to a constant where both operands are the same integer."""

_CLAMP = frozenset(f"arith.{name}" for name in ("maxsi", "maxui", "minsi", "minui"))
"""The two operations of a clamp, which fold to a constant where the bounds are out of order."""


def insert_const_eval_barriers(module_op: Operation) -> None:
    """Insert a barrier before the inputs of reductions over what may be one constant.

    Args:
        module_op: A module at the end of the phase `preprocessing`; changed in place.
    """
    for op in _constant_reductions(module_op):
        with InsertionPoint(op), op.location:
            for position, value in enumerate(inputs_of(op)):
                op.operands[position] = create("util.optimization_barrier", value.type, [value])


def _constant_reductions(module_op: Operation) -> list[Operation]:
    """Return the reductions of static size that const-eval may take, in program order."""
    constants: set[Value] = set()
    reductions: list[Operation] = []

    def visit(op: Operation) -> WalkResult:
        if op.name == "linalg.generic":
            _propagate_through_body(op, constants)
            if _is_constant_reduction(op, constants):
                reductions.append(op)
            return WalkResult.SKIP
        if op.name.startswith("linalg.pooling") and op.operands[0] in constants:
            if not _has_dynamic_sizes(op):
                reductions.append(op)
        if _may_be_constant(op, list(op.operands), constants):
            constants.update(op.results)
        return WalkResult.ADVANCE

    module_op.walk(visit, WalkOrder.PRE_ORDER)  # definitions before uses
    return reductions


def _is_constant_reduction(generic: Operation, constants: set[Value]) -> bool:
    """Tell whether a reduction of static size may accumulate a constant, and reads nothing else."""
    if not is_reduction(generic) or _has_dynamic_sizes(generic):
        return False
    if not any(op.operands[operand] in constants for op, operand in accumulated(generic)):
        return False
    block = body_of(generic)
    computed = set(list(block.arguments)[len(inputs_of(generic)) :])
    for op in block.operations:
        if any(value not in constants and value not in computed for value in op.operands):
            return False
        computed.update(op.results)
    return True


def _has_dynamic_sizes(op: Operation) -> bool:
    return any(DYNAMIC in RankedTensorType(value.type).shape for value in op.operands)


def _propagate_through_body(generic: Operation, constants: set[Value]) -> None:
    """Add the values of the body and the results of a `linalg.generic` that may be constant."""
    block = body_of(generic)
    first: dict[tuple[Value, str], Value] = {}
    same: dict[Value, Value] = {}
    maps = ArrayAttr(generic.attributes["indexing_maps"])
    for argument, value, indexing_map in zip(block.arguments, generic.operands, maps, strict=True):
        if value in constants:
            constants.add(argument)
        same[argument] = first.setdefault((value, str(indexing_map)), argument)
    for op in block.operations:
        operands = [same.get(value, value) for value in op.operands]
        if _may_be_constant(op.operation, operands, constants):
            constants.update(op.results)
    (*_, end) = block.operations
    for result, value in zip(generic.results, end.operands, strict=True):
        if value in constants:
            constants.add(result)


def _may_be_constant(op: Operation, operands: Sequence[Value], constants: set[Value]) -> bool:
    """Tell whether the results of an operation may be one constant.

    Args:
        op: The operation. IREE's canonicalisation has already folded what one constant operand
            decides, such as a product with 0.
        operands: Its operands, with one value for all that are equal.
        constants: The values that are known to be constant.
    """
    if op.name == "arith.constant":
        value = op.attributes["value"]
        scalar = not isinstance(op.result.type, RankedTensorType)
        return scalar or (isinstance(value, DenseElementsAttr) and bool(value.is_splat))
    if op.name == "linalg.index":
        return False
    known = [value in constants for value in operands]
    if op.name == "arith.select":
        condition, *branches = known
        return all(branches) or (condition and any(branches))
    if op.name == "linalg.fill":
        return known[0]
    if op.name in _FOLDED_FOR_EQUAL_OPERANDS and operands[0] == operands[1]:
        return True
    if op.name in _CLAMP and sum(known) == 1:
        inner = operands[known.index(False)].owner
        return not isinstance(inner, Block) and inner.name in _CLAMP
    return op.name.startswith(("arith.", "math.", "linalg.", "tensor.")) and all(known)
