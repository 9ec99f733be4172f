"""Padded tensors of dynamic sizes, as slices of filled ones.

The pass that puts the channels of convolutions last (`iree-preprocessing-convert-conv-to-channels-
last`) moves transpositions past a `tensor.pad`, and forgets the dynamic sizes of its result
(«'tensor.empty' op incorrect number of dynamic sizes», 3.13): a convolution before a padded pooling
or a depthwise one does not compile for a batch of dynamic size. IREE itself writes pads as slices
later on. Those of other convolutions stay: the pass needs them, and gets them right.
"""

from __future__ import annotations

from iree.compiler.ir import (
    DenseI32ArrayAttr,
    DenseI64ArrayAttr,
    IndexType,
    InsertionPoint,
    Operation,
    RankedTensorType,
    Value,
    WalkResult,
)

from ..emission import DYNAMIC, create, filled, index, size_of


def write_pads_as_slices(module_op: Operation) -> None:
    """Replace pads with dynamic sizes that no convolution takes.

    Args:
        module_op: A module at the end of the phase `input`; changed in place.
    """
    pads: list[tuple[Operation, Value]] = []

    def visit(op: Operation) -> WalkResult:
        if op.name == "tensor.pad" and _is_to_be_replaced(op):
            filling = _filling(op)
            if filling is not None:
                pads.append((op, filling))
        return WalkResult.ADVANCE

    module_op.walk(visit)
    for pad, filling in pads:
        with InsertionPoint(pad), pad.location:
            pad.result.replace_all_uses_with(_slice_of_filled(pad, filling))
        pad.erase()


def _is_to_be_replaced(pad: Operation) -> bool:
    if DYNAMIC not in RankedTensorType(pad.result.type).shape:
        return False
    if DYNAMIC in (*_sizes(pad, "static_low"), *_sizes(pad, "static_high")):
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


def _slice_of_filled(pad: Operation, filling: Value) -> Value:
    source, kind = pad.operands[0], RankedTensorType(pad.result.type)
    inner = list(RankedTensorType(source.type).shape)
    low, high = _sizes(pad, "static_low"), _sizes(pad, "static_high")
    sizes: list[Value] = []
    padded: list[Value] = []
    for axis, size in enumerate(inner):
        if size == DYNAMIC:
            sizes.append(size_of(source, axis))
            added = index(low[axis] + high[axis])
            padded.append(create("arith.addi", IndexType.get(), [sizes[-1], added]))
    slices = {
        "static_offsets": DenseI64ArrayAttr.get(low),
        "static_sizes": DenseI64ArrayAttr.get(inner),
        "static_strides": DenseI64ArrayAttr.get([1] * kind.rank),
        "operandSegmentSizes": DenseI32ArrayAttr.get([1, 1, 0, len(sizes), 0]),
    }
    operands = [source, filled(filling, kind, padded), *sizes]
    return create("tensor.insert_slice", kind, operands, slices)
