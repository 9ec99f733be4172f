"""Sources of gathers, materialized where they are slices of every second column, or the like.

IREE fuses a slice into the dispatch that gathers from it, and vectorizes the gather, which has no
lowering for a source whose innermost stride is not 1: `x[:, ::2][i]`, `x[:, ::2].flip(0)` and a
diagonal of it do not compile («LLVM Translation failed for operation:
builtin.unrealized_conversion_cast», 3.13). Behind a barrier the slice is a tensor of its own.
"""

from __future__ import annotations

from iree.compiler.ir import DenseI64ArrayAttr, InsertionPoint, Operation, OpResult, Value

from ..emission import behind_barrier
from ..linalg import VIEWS, operations_in


def materialize_strided_sources(module_op: Operation) -> None:
    """Put a barrier behind each slice of a step that elements are gathered from.

    Args:
        module_op: A module at the end of the phase `input`; changed in place.
    """
    for op in operations_in(module_op, "tensor.extract", "iree_linalg_ext.gather"):
        source = op.operands[0]
        if _is_strided(source):
            with InsertionPoint.after(source.owner), op.location:
                op.operands[0] = behind_barrier(source)


def _is_strided(value: Value) -> bool:
    """Tell whether a value is a view of a slice that has a step, in whichever dimension."""
    if not isinstance(value, OpResult):
        return False
    op = value.owner.operation
    if op.name not in VIEWS:
        return False
    if op.name == "tensor.extract_slice":
        strides = DenseI64ArrayAttr(op.attributes["static_strides"])
        if any(stride != 1 for stride in strides):
            return True
    return _is_strided(op.operands[0])
