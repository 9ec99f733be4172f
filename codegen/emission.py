"""IR builders: constants, sizes and filled tensors, at the current insertion point and location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iree.compiler.ir import (
    Attribute,
    Block,
    DenseI32ArrayAttr,
    IndexType,
    InsertionPoint,
    IntegerAttr,
    Operation,
    RankedTensorType,
    ShapedType,
    Type,
    Value,
)

DYNAMIC = ShapedType.get_dynamic_size()
"""The size of a dynamic dimension in a type."""


def create(
    name: str,
    kind: Type,
    operands: Sequence[Value],
    attributes: Mapping[str, Attribute] | None = None,
) -> Value:
    """Create an operation and return its one result.

    Args:
        name: The operation, such as `arith.addi`.
        kind: The type of the result.
        operands: The operands.
        attributes: The attributes by name.
    """
    return Operation.create(name, [kind], operands, attributes=dict(attributes or {})).result


def index(number: int) -> Value:
    """Return a constant of type `index`."""
    value = {"value": IntegerAttr.get(IndexType.get(), number)}
    return create("arith.constant", IndexType.get(), [], value)


def size_of(tensor: Value, axis: int) -> Value:
    """Return the size of a tensor along an axis."""
    return create("tensor.dim", IndexType.get(), [tensor, index(axis)])


def behind_barrier(tensor: Value) -> Value:
    """Return the same tensor as another value, of sizes that IREE can tell."""
    shape = RankedTensorType(tensor.type).shape
    sizes = [size_of(tensor, axis) for axis, size in enumerate(shape) if size == DYNAMIC]
    barrier = create("util.optimization_barrier", tensor.type, [tensor])
    if not sizes:
        return barrier
    return create("flow.tensor.tie_shape", tensor.type, [barrier, *sizes])


def filled(value: Value, kind: Type, sizes: Sequence[Value]) -> Value:
    """Return a tensor filled with a scalar.

    Args:
        value: The scalar.
        kind: The type of the tensor.
        sizes: The sizes of its dynamic dimensions.
    """
    empty = create("tensor.empty", kind, sizes)
    segments = {"operandSegmentSizes": DenseI32ArrayAttr.get([1, 1])}
    fill = Operation.create("linalg.fill", [kind], [value, empty], attributes=segments, regions=1)
    element = RankedTensorType(kind).element_type
    block = Block.create_at_start(fill.regions[0], [element, element])
    with InsertionPoint(block):
        Operation.create("linalg.yield", operands=[block.arguments[0]])
    return fill.result
