"""Destinations of writes, separated from what the same dispatch reads.

A dispatch that writes part of a tensor gets the tensor once, to be read and written in place, also
where what it writes is computed of other places of that tensor: IREE (3.13) moves the elements of
`y[:, 1:] = y[:, :-1]` one by one, so that each is a copy of the first. Behind a barrier, the
destination is another value than what is read; `shared_storage.py` removes the barrier once the
dispatches are formed, and copies the destination.

Scatters, sorts and their like write to the tensor that a dispatch is given, never to one that the
same dispatch computes: with a slice as the destination, they do not compile («write affecting
operations on global resources are restricted to workgroup distributed contexts»).
"""

from __future__ import annotations

from iree.compiler.ir import (
    DenseI32ArrayAttr,
    InsertionPoint,
    Operation,
    OpResult,
    Value,
)

from ..emission import behind_barrier
from ..linalg import operations_in

_SEPARATE = frozenset(
    ["bufferization.alloc_tensor", "linalg.fill", "tensor.empty", "tensor.splat",
     "util.optimization_barrier"]
)  # fmt: skip
"""Operations whose results hold no elements, hold one everywhere, or stand behind a barrier."""

_SLICES = ("tensor.insert_slice",)
"""Operations that write a part of a tensor for which IREE has an operation between dispatches."""


def separate_destinations(module_op: Operation) -> None:
    """Put a barrier before each destination that is read elsewhere, and before those of scatters.

    Args:
        module_op: A module at the end of the phase `input`; changed in place.
    """
    for op in operations_in(module_op):
        for place in _destinations(op):
            value = op.operands[place]
            if not _is_separate(value) and (op.name not in _SLICES or len(list(value.uses)) > 1):
                with InsertionPoint(op), op.location:
                    op.operands[place] = behind_barrier(value)


def _destinations(op: Operation) -> list[int]:
    """Return which operands an operation writes parts of."""
    if op.name in _SLICES:
        return [1]
    if op.name == "iree_linalg_ext.sort":
        return list(range(len(op.operands)))
    if not op.name.startswith("iree_linalg_ext.") or not op.results:
        return []
    if "operandSegmentSizes" in op.attributes:
        inputs, outputs, *_ = DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
        return list(range(inputs, inputs + outputs))
    return [len(op.operands) - 1]


def _is_separate(value: Value) -> bool:
    if not isinstance(value, OpResult):
        return False
    op = value.owner.operation
    if op.name == "flow.tensor.tie_shape":
        return _is_separate(op.operands[0])
    return op.name in _SEPARATE
