"""Pads of dynamic size, decomposed into slices of filled tensors.

The pass that makes convolutions channels-last
(`iree-preprocessing-convert-conv-to-channels-last`) moves transpositions past a `tensor.pad` and
drops the dynamic sizes of its result («'tensor.empty' op incorrect number of dynamic sizes»,
3.13): a convolution before a padded pooling or a depthwise convolution does not compile for a
dynamic batch. IREE itself decomposes pads later on. Pads of other convolutions are left as they
are: the pass needs them and handles them correctly.

Results of windows are padded from behind a barrier: IREE fuses a pooling or a convolution
of one picture with the slice that it is written to, and takes one size of the slice for another, so
that `F.pad(F.avg_pool2d(x, 3), (1, 1, 1, 1))` of dynamic height and width is written askew.
"""

from __future__ import annotations

from iree.compiler.ir import (
    DenseI32ArrayAttr,
    DenseI64ArrayAttr,
    IndexType,
    InsertionPoint,
    Operation,
    OpResult,
    RankedTensorType,
    Value,
)

from ..emission import DYNAMIC, behind_barrier, create, filled, index, size_of
from ..linalg import VIEWS, inputs_of, is_reduction, operations_in


def decompose_dynamic_pads(module_op: Operation) -> None:
    """Replace pads of dynamic size, unless a channels-last convolution reads them.

    Args:
        module_op: A module at the end of the phase `input`; changed in place.
    """
    for pad in operations_in(module_op, "tensor.pad"):
        padding = _padding_value(pad)
        if padding is not None and _is_dynamic(pad) and not _feeds_convolution(pad):
            with InsertionPoint(pad), pad.location:
                pad.result.replace_all_uses_with(_slice_of_filled(pad, padding))
            pad.erase()


def _is_dynamic(pad: Operation) -> bool:
    """Tell whether a pad of static widths has a result of dynamic size."""
    if DYNAMIC in (*_sizes(pad, "static_low"), *_sizes(pad, "static_high")):
        return False
    return DYNAMIC in RankedTensorType(pad.result.type).shape


def _feeds_convolution(pad: Operation) -> bool:
    """Tell whether a pad is read by a convolution that the pass makes channels-last."""
    users = (use.owner.operation.name for use in pad.result.uses)
    return any("conv" in user and "depthwise" not in user for user in users)


def _sizes(op: Operation, name: str) -> list[int]:
    return list(DenseI64ArrayAttr(op.attributes[name]))


def _padding_value(pad: Operation) -> Value | None:
    """Return the scalar that a pad fills with; None where its body computes one per element."""
    (block,) = pad.regions[0].blocks
    (*computed, end) = block.operations
    value = end.operation.operands[0]
    return None if computed or value.owner == block else value


def _reads_windows(value: Value) -> bool:
    """Tell whether elements of a value depend on several of an operand, or on one elsewhere."""
    if not isinstance(value, OpResult):
        return False
    op = value.owner.operation
    if op.name in VIEWS:
        return _reads_windows(op.operands[0])
    if not op.name.startswith("linalg.") or op.name == "linalg.fill":
        return False
    if op.name != "linalg.generic" or is_reduction(op) or operations_in(op, "tensor.extract"):
        return True
    return any(map(_reads_windows, inputs_of(op)))


def _slice_of_filled(pad: Operation, padding: Value) -> Value:
    source, kind = pad.operands[0], RankedTensorType(pad.result.type)
    if _reads_windows(source):
        source = behind_barrier(source)
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
    operands = [source, filled(padding, kind, padded), *sizes]
    return create("tensor.insert_slice", kind, operands, slices)
