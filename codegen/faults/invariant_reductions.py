"""Sums and products of numbers that are all the same, counted right.

IREE's vectoriser reduces vectors. Where the number that a reduction adds or multiplies by does not
depend on an element, as the compiler found out what all of them are, the number stays a scalar and
is taken once for each vector instead of once for each element (3.13): a sum of six ones is 1, their
mean 1/6. So such a number is read from a tensor that is filled with it.
"""

from __future__ import annotations

from iree.compiler.ir import (
    AffineDimExpr,
    AffineMap,
    AffineMapAttr,
    ArrayAttr,
    Block,
    DenseI32ArrayAttr,
    InsertionPoint,
    Operation,
    RankedTensorType,
    Value,
    WalkResult,
)

from ..emission import DYNAMIC, create, filled, size_of
from ..linalg import body_of, counted, inputs_of, is_reduction


def mend_reductions(module_op: Operation) -> None:
    """Let reductions read numbers that do not depend on their elements from tensors.

    Args:
        module_op: A module at the end of the phase `executable-sources`; changed in place.
    """
    reductions: list[Operation] = []

    def visit(op: Operation) -> WalkResult:
        if is_reduction(op):
            reductions.append(op)
        return WalkResult.ADVANCE

    module_op.walk(visit)
    for reduction in reductions:
        varying = _varying(reduction)
        for combination, place in list(counted(reduction)):
            if combination.operands[place] not in varying:
                reduction = _reading_from_tensor(reduction, combination, place)


def _varying(reduction: Operation) -> set[Value]:
    """Return the values in the body of a reduction that depend on an element, or on its place."""
    block = body_of(reduction)
    varying: set[Value] = set(block.arguments)
    for op in block.operations:
        if op.operation.name == "linalg.index" or any(each in varying for each in op.operands):
            varying.update(op.results)
    return varying


def _reading_from_tensor(reduction: Operation, combination: Operation, place: int) -> Operation:
    """Return a reduction in which a combination reads its number from one more input."""
    number = combination.operands[place]
    inputs, block = inputs_of(reduction), body_of(reduction)
    outputs = list(reduction.operands)[len(inputs) :]
    with InsertionPoint(reduction), reduction.location:
        sizes = _sizes_of_reduced_loops(reduction)
        shape = [size if isinstance(size, int) else DYNAMIC for size in sizes.values()]
        unknown = [size for size in sizes.values() if not isinstance(size, int)]
        kind = RankedTensorType.get(shape, number.type)
        tensor = filled(_before(reduction, number), kind, unknown)
        loops = len(ArrayAttr(reduction.attributes["iterator_types"]))
        places = AffineMap.get(loops, 0, [AffineDimExpr.get(loop) for loop in sizes])
        maps = [AffineMapAttr.get(places), *ArrayAttr(reduction.attributes["indexing_maps"])]
        segments = DenseI32ArrayAttr.get([len(inputs) + 1, len(outputs)])
        attributes = {name: reduction.attributes[name] for name in reduction.attributes}
        attributes |= {"indexing_maps": ArrayAttr.get(maps), "operandSegmentSizes": segments}
        mended = Operation.create(
            reduction.name,
            [result.type for result in reduction.results],
            [tensor, *inputs, *outputs],
            attributes=attributes,
            regions=1,
        )
        kinds = [number.type, *(argument.type for argument in block.arguments)]
        body = Block.create_at_start(mended.regions[0], kinds)
    for old, new in zip(block.arguments, list(body.arguments)[1:], strict=True):
        old.replace_all_uses_with(new)
    for op in list(block.operations):
        body.append(op)
    combination.operands[place] = body.arguments[0]
    for old, new in zip(reduction.results, mended.results, strict=True):
        old.replace_all_uses_with(new)
    reduction.erase()
    return mended


def _sizes_of_reduced_loops(generic: Operation) -> dict[int, int | Value]:
    """Return how often the loops of a reduction that reduce run, in their order.

    That is a number, or a value where it is not known. Each loop is an axis of some operand:
    MLIR takes no others.
    """
    sizes: dict[int, int | Value] = {}
    maps = [AffineMapAttr(each).value for each in ArrayAttr(generic.attributes["indexing_maps"])]
    for value, places in zip(generic.operands, maps, strict=True):
        shape = RankedTensorType(value.type).shape
        for axis, place in enumerate(places.results):
            if isinstance(place, AffineDimExpr) and place.position not in sizes:
                size = shape[axis]
                sizes[place.position] = size_of(value, axis) if size == DYNAMIC else size
    kinds = enumerate(ArrayAttr(generic.attributes["iterator_types"]))
    return {loop: sizes[loop] for loop, kind in kinds if "reduction" in str(kind)}


def _before(op: Operation, value: Value) -> Value:
    """Return a value that the body of an operation uses, computed before the operation."""
    owner = value.owner
    if isinstance(owner, Block) or owner.operation.parent != op:
        return value
    operands = [_before(op, each) for each in owner.operands]
    attributes = {name: owner.attributes[name] for name in owner.attributes}
    return create(owner.operation.name, value.type, operands, attributes)
