"""Padded tensors of dynamic sizes, as slices of filled ones.

The pass that puts the channels of convolutions last (`iree-preprocessing-convert-conv-to-channels-
last`) moves transpositions past a `tensor.pad`, and forgets the dynamic sizes of its result
(«'tensor.empty' op incorrect number of dynamic sizes», 3.13): a convolution before a padded pooling
or a depthwise one does not compile for a batch of dynamic size. IREE itself writes pads as slices
later on. Those of other convolutions stay: the pass needs them, and gets them right.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler.ir import (
    Attribute,
    Block,
    DenseI32ArrayAttr,
    DenseI64ArrayAttr,
    IndexType,
    InsertionPoint,
    IntegerAttr,
    Operation,
    RankedTensorType,
    ShapedType,
    Type,
    Value,
    WalkResult,
)

_DYNAMIC = ShapedType.get_dynamic_size()


def write_pads_as_slices(module_op: Operation) -> None:
    """Replace pads with dynamic sizes that no convolution takes.

    Args:
        module_op: A module at the end of the phase `input`; changed in place.
    """
    pads: list[Operation] = []

    def visit(op: Operation) -> WalkResult:
        if op.name == "tensor.pad" and _is_to_be_replaced(op):
            pads.append(op)
        return WalkResult.ADVANCE

    module_op.walk(visit)
    for pad in pads:
        with InsertionPoint(pad), pad.location:
            pad.result.replace_all_uses_with(_slice_of_filled(pad))
        pad.erase()


def _is_to_be_replaced(pad: Operation) -> bool:
    if _DYNAMIC not in RankedTensorType(pad.result.type).shape or _filling(pad) is None:
        return False
    if _DYNAMIC in (*_sizes(pad, "static_low"), *_sizes(pad, "static_high")):
        return False
    return not any(_is_moved_past(use.owner.operation.name) for use in pad.result.uses)


def _is_moved_past(user: str) -> bool:
    """Tell whether the pass makes an operation of a name channels-last, and its pad with it."""
    return "conv" in user and "depthwise" not in user


def _sizes(op: Operation, name: str) -> list[int]:
    return list(DenseI64ArrayAttr(op.attributes[name]))


def _filling(pad: Operation) -> Value | None:
    """Return the one value that a pad fills with; None where it computes values."""
    (block,) = pad.regions[0].blocks
    (*computed, end) = block.operations
    value = end.operation.operands[0]
    return None if computed or value.owner == block else value


def _slice_of_filled(pad: Operation) -> Value:
    source, kind = pad.operands[0], RankedTensorType(pad.result.type)
    inner = list(RankedTensorType(source.type).shape)
    low, high = _sizes(pad, "static_low"), _sizes(pad, "static_high")
    sizes: list[Value] = []
    padded: list[Value] = []
    for axis, size in enumerate(inner):
        if size == _DYNAMIC:
            sizes.append(_create("tensor.dim", IndexType.get(), [source, _index(axis)]))
            added = _index(low[axis] + high[axis])
            padded.append(_create("arith.addi", IndexType.get(), [sizes[-1], added]))
    empty = _create("tensor.empty", kind, padded)
    slices = {
        "static_offsets": DenseI64ArrayAttr.get(low),
        "static_sizes": DenseI64ArrayAttr.get(inner),
        "static_strides": DenseI64ArrayAttr.get([1] * kind.rank),
        "operandSegmentSizes": DenseI32ArrayAttr.get([1, 1, 0, len(sizes), 0]),
    }
    operands = [source, _filled(_filling(pad), empty), *sizes]
    return _create("tensor.insert_slice", kind, operands, slices)


def _filled(value: Value | None, empty: Value) -> Value:
    segments = {"operandSegmentSizes": DenseI32ArrayAttr.get([1, 1])}
    fill = Operation.create(
        "linalg.fill", [empty.type], [value, empty], attributes=segments, regions=1
    )
    element = RankedTensorType(empty.type).element_type
    block = Block.create_at_start(fill.regions[0], [element, element])
    with InsertionPoint(block):
        Operation.create("linalg.yield", operands=[block.arguments[0]])
    return fill.result


def _index(number: int) -> Value:
    value = {"value": IntegerAttr.get(IndexType.get(), number)}
    return _create("arith.constant", IndexType.get(), [], value)


def _create(
    name: str,
    kind: Type,
    operands: Sequence[Value],
    attributes: dict[str, Attribute] | None = None,
) -> Value:
    return Operation.create(name, [kind], operands, attributes=attributes or {}).result
