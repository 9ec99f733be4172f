"""Reductions with a loop-invariant operand, which IREE's vectoriser counts wrongly.

The vectoriser reduces vectors. Where the operand that a reduction adds or multiplies by does not
depend on an element, since the compiler folded all elements to one constant, the operand stays a
scalar and is combined once per vector instead of once per element (3.13): a sum of six ones is 1,
their mean 1/6. So such an operand is materialized as a filled tensor, which the reduction reads.
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
)

from ..emission import DYNAMIC, create, filled, size_of
from ..linalg import accumulated, body_of, inputs_of, is_reduction, iterator_kinds, operations_in


def materialize_invariant_reduction_inputs(module_op: Operation) -> None:
    """Materialize the loop-invariant operands of reductions as tensors.

    Args:
        module_op: A module at the end of the phase `executable-sources`; changed in place.
    """
    for reduction in filter(is_reduction, operations_in(module_op, "linalg.generic")):
        for combiner, operand in _invariant_operands(reduction):
            reduction = _with_materialized_operand(reduction, combiner, operand)


def _invariant_operands(reduction: Operation) -> list[tuple[Operation, int]]:
    """Return the combiners of a reduction with the index of their loop-invariant operand."""
    varying = _loop_varying_values(reduction)
    return [
        (combiner, operand)
        for combiner, operand in accumulated(reduction)
        if combiner.operands[operand] not in varying
    ]


def _loop_varying_values(reduction: Operation) -> set[Value]:
    """Return the values in the body of a reduction that depend on an element or a loop index."""
    block = body_of(reduction)
    varying: set[Value] = set(block.arguments)
    for op in block.operations:
        if op.operation.name == "linalg.index" or any(each in varying for each in op.operands):
            varying.update(op.results)
    return varying


def _with_materialized_operand(
    reduction: Operation, combiner: Operation, operand: int
) -> Operation:
    """Replace a reduction by one that reads an operand of a combiner from one more input.

    Args:
        reduction: The reduction; erased.
        combiner: An operation of its body.
        operand: The index of the combiner's operand that is loop-invariant.

    Returns:
        The new reduction, with the operations of the old one's body.
    """
    invariant = combiner.operands[operand]
    block = body_of(reduction)
    with InsertionPoint(reduction), reduction.location:
        new, body = _with_input(reduction, _filled_over_reduction_loops(reduction, invariant))
    for old_value, new_value in zip(block.arguments, list(body.arguments)[1:], strict=True):
        old_value.replace_all_uses_with(new_value)
    for op in list(block.operations):
        body.append(op)
    combiner.operands[operand] = body.arguments[0]
    for old_value, new_value in zip(reduction.results, new.results, strict=True):
        old_value.replace_all_uses_with(new_value)
    reduction.erase()
    return new


def _filled_over_reduction_loops(reduction: Operation, invariant: Value) -> Value:
    """Return a tensor over the reduction loops, filled with a loop-invariant value of the body."""
    sizes = list(_reduction_loop_sizes(reduction).values())
    shape = [size if isinstance(size, int) else DYNAMIC for size in sizes]
    dynamic = [size for size in sizes if not isinstance(size, int)]
    kind = RankedTensorType.get(shape, invariant.type)
    return filled(_hoisted(reduction, invariant), kind, dynamic)


def _with_input(reduction: Operation, tensor: Value) -> tuple[Operation, Block]:
    """Create a reduction with one more input over the reduction loops, and an empty body."""
    inputs = inputs_of(reduction)
    outputs = list(reduction.operands)[len(inputs) :]
    loops = iterator_kinds(reduction)
    reduced = [AffineDimExpr.get(i) for i, kind in enumerate(loops) if kind == "reduction"]
    indexing_map = AffineMapAttr.get(AffineMap.get(len(loops), 0, reduced))
    maps = [indexing_map, *ArrayAttr(reduction.attributes["indexing_maps"])]
    attributes = {name: reduction.attributes[name] for name in reduction.attributes}
    attributes["indexing_maps"] = ArrayAttr.get(maps)
    attributes["operandSegmentSizes"] = DenseI32ArrayAttr.get([len(inputs) + 1, len(outputs)])
    new = Operation.create(
        reduction.name,
        [result.type for result in reduction.results],
        [tensor, *inputs, *outputs],
        attributes=attributes,
        regions=1,
    )
    element = RankedTensorType(tensor.type).element_type
    kinds = [element, *(argument.type for argument in body_of(reduction).arguments)]
    return new, Block.create_at_start(new.regions[0], kinds)


def _reduction_loop_sizes(generic: Operation) -> dict[int, int | Value]:
    """Return the trip counts of the reduction loops, in their order; a value where one is dynamic.

    Each loop is an axis of some operand: MLIR's verifier accepts no others.
    """
    sizes: dict[int, int | Value] = {}
    maps = [AffineMapAttr(each).value for each in ArrayAttr(generic.attributes["indexing_maps"])]
    for value, axes in zip(generic.operands, maps, strict=True):
        shape = RankedTensorType(value.type).shape
        for axis, loop in enumerate(axes.results):
            if isinstance(loop, AffineDimExpr) and loop.position not in sizes:
                size = shape[axis]
                sizes[loop.position] = size_of(value, axis) if size == DYNAMIC else size
    kinds = enumerate(iterator_kinds(generic))
    return {loop: sizes[loop] for loop, kind in kinds if kind == "reduction"}


def _hoisted(op: Operation, value: Value) -> Value:
    """Return a loop-invariant value of the body of an operation, computed before the operation."""
    owner = value.owner
    if isinstance(owner, Block) or owner.operation.parent != op:
        return value
    operands = [_hoisted(op, each) for each in owner.operands]
    attributes = {name: owner.attributes[name] for name in owner.attributes}
    return create(owner.operation.name, value.type, operands, attributes)
