"""What structured operations say of themselves: their inputs, loops and reductions."""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler.ir import Block, DenseI32ArrayAttr, Operation, Value

_COUNTING = frozenset(
    f"arith.{name}" for name in ("addf", "addi", "mulf", "muli", "subf", "subi", "xori")
)
"""Combinations that give another result where a number is taken twice; a maximum does not."""


def inputs_of(op: Operation) -> list[Value]:
    """Return the inputs of a structured operation; its other operands are its outputs."""
    (count, _) = DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    return list(op.operands)[:count]


def body_of(generic: Operation) -> Block:
    """Return what a `linalg.generic` computes of the elements of its operands."""
    (block,) = generic.regions[0].blocks
    return block


def is_reduction(op: Operation) -> bool:
    """Tell whether an operation is a `linalg.generic` that combines elements into fewer."""
    return op.name == "linalg.generic" and "reduction" in str(op.attributes["iterator_types"])


def counted(reduction: Operation) -> Iterator[tuple[Operation, int]]:
    """Yield the numbers of which it matters how often a reduction takes them.

    Each is the combination of a number with an output, as a sum's, and the place of the number in
    its operands.
    """
    block = body_of(reduction)
    outputs = list(block.arguments)[len(inputs_of(reduction)) :]
    (*_, end) = block.operations
    for output, result in zip(outputs, end.operands, strict=True):
        combination = result.owner
        if isinstance(combination, Block) or combination.operation.name not in _COUNTING:
            continue
        operands = list(combination.operands)
        if output in operands:
            yield combination.operation, 1 - operands.index(output)
