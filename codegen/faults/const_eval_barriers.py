"""Reductions of elements of which a compiler may find out that they are all one constant.

What follows from nothing that only a call tells is computed while compiling, by a compile within
the compile, in which nothing can be changed. Reductions that IREE gets wrong there
(`constant_reductions.py`) are kept from it by a barrier, and done when the program is called. It
stands before the inputs, which are read only: IREE would add to what is behind one in its place.
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
from ..linalg import body_of, counted, inputs_of, is_reduction

_SELF_CONSTANT = frozenset(f"arith.{name}" for name in ("cmpi", "subi", "xori", "divsi", "divui"))
"""What is constant for two operands that are the same integer."""

_BOUNDS = frozenset(f"arith.{name}" for name in ("maxsi", "maxui", "minsi", "minui"))
"""What a clamp consists of, which is constant where the bounds are in the wrong order."""


def keep_from_evaluation(module_op: Operation) -> None:
    """Put a barrier before the inputs of reductions that may be of one constant.

    Args:
        module_op: A module at the end of the phase `preprocessing`; changed in place.
    """
    constants: set[Value] = set()
    reductions: list[Operation] = []

    def visit(op: Operation) -> WalkResult:
        if op.name == "linalg.generic":
            _add_constants(op, constants)
            if _may_be_evaluated(op, constants):
                reductions.append(op)
            return WalkResult.SKIP
        if op.name.startswith("linalg.pooling") and op.operands[0] in constants:
            if not _has_dynamic_sizes(op):
                reductions.append(op)
        if _is_constant(op, list(op.operands), constants):
            constants.update(op.results)
        return WalkResult.ADVANCE

    module_op.walk(visit, WalkOrder.PRE_ORDER)
    for op in reductions:
        with InsertionPoint(op), op.location:
            for place, value in enumerate(inputs_of(op)):
                op.operands[place] = create("util.optimization_barrier", value.type, [value])


def _may_be_evaluated(generic: Operation, constants: set[Value]) -> bool:
    """Tell whether a reduction may count a constant, and depend on nothing else."""
    if not is_reduction(generic) or _has_dynamic_sizes(generic):
        return False
    if not any(op.operands[place] in constants for op, place in counted(generic)):
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


def _add_constants(generic: Operation, constants: set[Value]) -> None:
    """Add what may be constant of a `linalg.generic`: of its body and of its results."""
    block = body_of(generic)
    first: dict[tuple[Value, str], Value] = {}
    same: dict[Value, Value] = {}
    maps = ArrayAttr(generic.attributes["indexing_maps"])
    for argument, value, places in zip(block.arguments, generic.operands, maps, strict=True):
        if value in constants:
            constants.add(argument)
        same[argument] = first.setdefault((value, str(places)), argument)
    for op in block.operations:
        operands = [same.get(value, value) for value in op.operands]
        if _is_constant(op.operation, operands, constants):
            constants.update(op.results)
    (*_, end) = block.operations
    for result, value in zip(generic.results, end.operands, strict=True):
        if value in constants:
            constants.add(result)


def _is_constant(op: Operation, operands: Sequence[Value], constants: set[Value]) -> bool:
    """Tell whether the results of an operation may be one constant.

    Args:
        op: The operation, from which IREE's canonicalisation has gone what is constant by a
            constant operand, as a product with 0.
        operands: Its operands, of which those that are the same are the same value.
        constants: What is known to be constant.
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
    if op.name in _SELF_CONSTANT and operands[0] == operands[1]:
        return True
    if op.name in _BOUNDS and sum(known) == 1:
        inner = operands[known.index(False)].owner
        return not isinstance(inner, Block) and inner.name in _BOUNDS
    return op.name.startswith(("arith.", "math.", "linalg.", "tensor.")) and all(known)
