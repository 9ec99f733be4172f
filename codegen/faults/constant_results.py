"""Constants of several results, computed one by one.

A dispatch without operands is copied to each of its users, and IREE (3.13) then hands the first
result to all of them: of `x.scatter_add(0, torch.tensor([1]), source)` with a constant source, the
place is read where the value is, so that nothing is added. So a `linalg.generic` of constants that
has several results becomes one for each result.
"""

from __future__ import annotations

from iree.compiler.ir import (
    ArrayAttr,
    Block,
    DenseI32ArrayAttr,
    InsertionPoint,
    Operation,
    Value,
    WalkResult,
)

from ..linalg import body_of, inputs_of

_CONSTANT_OF_OPERANDS = ("arith.", "linalg.", "math.", "tensor.")
"""Dialects whose operations are constant where their operands are."""


def split_constant_results(module_op: Operation) -> None:
    """Split operations on constants that have several results.

    Args:
        module_op: A module at the end of the phase `input`; changed in place.
    """
    found: list[Operation] = []

    def visit(op: Operation) -> WalkResult:
        if op.name == "linalg.generic" and _can_be_split(op) and _is_constant(op):
            found.append(op)
        return WalkResult.ADVANCE

    module_op.walk(visit)
    for generic in found:
        for number, result in enumerate(generic.results):
            with InsertionPoint(generic), generic.location:
                result.replace_all_uses_with(_with_one_result(generic, number))
        generic.erase()


def _can_be_split(generic: Operation) -> bool:
    """Tell whether there are several results, none of which is computed from another output."""
    block = body_of(generic)
    outputs = list(block.arguments)[len(inputs_of(generic)) :]
    if len(outputs) < 2 or any(op.operation.regions for op in block.operations):
        return False
    return not any(value in outputs for op in block.operations for value in op.operands)


def _is_constant(op: Operation) -> bool:
    if op.name == "util.global.load":
        return True
    if not op.name.startswith(_CONSTANT_OF_OPERANDS):
        return False
    return not any(
        isinstance(value.owner, Block) or not _is_constant(value.owner.operation)
        for value in (*op.operands, *_captured(op))
    )


def _captured(op: Operation) -> list[Value]:
    """Return what the bodies of an operation use that is computed outside of it."""
    blocks = [block for region in op.regions for block in region.blocks]
    return [
        value
        for block in blocks
        for inner in block.operations
        for value in inner.operands
        if value.owner != block
        and (isinstance(value.owner, Block) or value.owner.operation.parent != op)
    ]


def _with_one_result(generic: Operation, number: int) -> Value:
    """Return a result of a generic as the only one of a copy, without the other outputs."""
    inputs = inputs_of(generic)
    kept = [*range(len(inputs)), len(inputs) + number]
    maps = list(ArrayAttr(generic.attributes["indexing_maps"]))
    attributes = {name: generic.attributes[name] for name in generic.attributes}
    attributes["indexing_maps"] = ArrayAttr.get([maps[place] for place in kept])
    attributes["operandSegmentSizes"] = DenseI32ArrayAttr.get([len(inputs), 1])
    operands = [generic.operands[place] for place in kept]
    kind = generic.results[number].type
    single = Operation.create("linalg.generic", [kind], operands, attributes=attributes, regions=1)
    old = body_of(generic)
    arguments = [old.arguments[place] for place in kept]
    body = Block.create_at_start(single.regions[0], [each.type for each in arguments])
    copies: dict[Value, Value] = dict(zip(arguments, body.arguments, strict=True))
    (*computed, end) = old.operations
    with InsertionPoint(body):
        for op in computed:
            copied = op.operation.clone()
            for place, value in enumerate(op.operands):
                copied.operands[place] = copies.get(value, value)
            copies.update(zip(op.results, copied.results, strict=True))
        result = end.operation.operands[number]
        Operation.create("linalg.yield", operands=[copies.get(result, result)])
    return single.result
