"""Operations that changes of a program put in, at the insertion point and location that is set."""

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
"""What a type has for a size that it does not know."""


def create(
    name: str,
    kind: Type,
    operands: Sequence[Value],
    attributes: Mapping[str, Attribute] | None = None,
) -> Value:
    """Create an operation and return its one result."""
    return Operation.create(name, [kind], operands, attributes=dict(attributes or {})).result


def index(number: int) -> Value:
    """Return a constant of type `index`."""
    value = {"value": IntegerAttr.get(IndexType.get(), number)}
    return create("arith.constant", IndexType.get(), [], value)


def size_of(tensor: Value, axis: int) -> Value:
    """Return the size of a tensor along an axis."""
    return create("tensor.dim", IndexType.get(), [tensor, index(axis)])


def filled(value: Value, kind: Type, sizes: Sequence[Value]) -> Value:
    """Return a tensor of a type whose elements are all one value.

    Args:
        value: A scalar.
        kind: The type.
        sizes: The sizes that the type does not know.
    """
    empty = create("tensor.empty", kind, sizes)
    segments = {"operandSegmentSizes": DenseI32ArrayAttr.get([1, 1])}
    fill = Operation.create("linalg.fill", [kind], [value, empty], attributes=segments, regions=1)
    element = RankedTensorType(kind).element_type
    block = Block.create_at_start(fill.regions[0], [element, element])
    with InsertionPoint(block):
        Operation.create("linalg.yield", operands=[block.arguments[0]])
    return fill.result
