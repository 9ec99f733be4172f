"""Queries of operations: by name, and the inputs, loops and reductions of structured ones."""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler.ir import ArrayAttr, Block, DenseI32ArrayAttr, Operation, Value, WalkResult

_NOT_IDEMPOTENT = frozenset(
    f"arith.{name}" for name in ("addf", "addi", "mulf", "muli", "subf", "subi", "xori")
)
"""Combiners whose result changes when an operand is combined twice; that of a maximum does not."""


VIEWS = frozenset(
    ["tensor.cast", "tensor.collapse_shape", "tensor.expand_shape", "tensor.extract_slice"]
)
"""Operations whose result has elements of their first operand, as they are."""


def operations_in(root: Operation, *names: str) -> list[Operation]:
    """Return the operations within a root, in post-order, so that they can be rewritten.

    `RewritePatternSet` is not used for this: it hands out typed operations, for which the bindings
    import the dialect's Python module. That of `linalg` takes 0.1 seconds in each child process.

    Args:
        root: The operation to search.
        names: The operations to return, such as `linalg.generic`; none: all.

    Example:
        >>> from iree.compiler.ir import Context, Module
        >>> text = "func.func @main(%x: f32) -> f32 { return %x : f32 }"
        >>> with Context():
        ...     [op.name for op in operations_in(Module.parse(text).operation)]
        ['func.return', 'func.func', 'builtin.module']
    """
    found: list[Operation] = []

    def visit(op: Operation) -> WalkResult:
        if not names or op.name in names:
            found.append(op)
        return WalkResult.ADVANCE

    root.walk(visit)
    return found


def inputs_of(op: Operation) -> list[Value]:
    """Return the inputs of a structured operation; its other operands are its outputs."""
    (count, _) = DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    return list(op.operands)[:count]


def body_of(generic: Operation) -> Block:
    """Return the block of a `linalg.generic` that computes one element of its results."""
    (block,) = generic.regions[0].blocks
    return block


def is_reduction(op: Operation) -> bool:
    """Tell whether an operation is a `linalg.generic` with a reduction loop."""
    return op.name == "linalg.generic" and "reduction" in iterator_kinds(op)


def iterator_kinds(op: Operation) -> list[str]:
    """Return the kind of each loop of a structured operation, `parallel` or `reduction`.

    An operation without the attribute `iterator_types` has none.
    """
    if "iterator_types" not in op.attributes:
        return []
    spelled = (str(kind) for kind in ArrayAttr(op.attributes["iterator_types"]))
    return ["reduction" if "reduction" in kind else "parallel" for kind in spelled]


def accumulated(reduction: Operation) -> Iterator[tuple[Operation, int]]:
    """Yield the combiners of a reduction for which the trip count matters.

    Returns:
        Each combiner of an operand with an accumulator, such as the addition of a sum, and the
        index of the operand that is not the accumulator.
    """
    block = body_of(reduction)
    outputs = list(block.arguments)[len(inputs_of(reduction)) :]
    (*_, end) = block.operations
    for output, result in zip(outputs, end.operands, strict=True):
        combiner = result.owner
        if isinstance(combiner, Block) or combiner.operation.name not in _NOT_IDEMPOTENT:
            continue
        operands = list(combiner.operands)
        if output in operands:
            yield combiner.operation, 1 - operands.index(output)
