"""Refusal of programs whose meaning depends on a dynamic size being 1 or not.

torch.export traces dynamic sizes as larger than 1. For nearly all operators that changes nothing,
because a size of 1 differs in its memory layout only; `squeeze` is the one that drops it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from ..compat.symbolic import bound_sympy
from ..spec.errors import DynamicShapeError
from ..spec.locations import location_of_node

_SQUEEZES = (
    torch.ops.aten.squeeze.default,
    torch.ops.aten.squeeze.dim,
    torch.ops.aten.squeeze.dims,
)

_ALIGNED = {
    torch.ops.aten.upsample_bicubic2d.vec: 2,
    torch.ops.aten.upsample_bicubic2d.default: 2,
}
"""Operators that divide by a size less 1, and the place of `align_corners`."""


def refuse_squeezed_sizes(program: ExportedProgram) -> None:
    """Refuse a `squeeze` of a dynamic size that may be 1, where its result would lose a dimension.

    Raises:
        DynamicShapeError: Names the operator, the dimension, its range and the user's line.
    """
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target not in _SQUEEZES:
            continue
        shape = node.args[0].meta["val"].shape
        for axis in _squeezed_axes(node, len(shape)):
            size = shape[axis]
            if isinstance(size, torch.SymInt) and _may_be_one(size, program.range_constraints):
                raise DynamicShapeError(
                    f"{node.target} drops dimension {axis} only when its size is 1, and that "
                    "dynamic size may be 1 or not; the number of dimensions of a compiled result "
                    "is fixed: index with [0] or reshape, or give the size a minimum of 2",
                    location=location_of_node(node),
                )


def refuse_aligned_corners(program: ExportedProgram) -> None:
    """Refuse resizing with `align_corners` to a dynamic size that may be 1.

    torch's decompositions divide by the size less 1, unless it is 1; which of both is decided once.

    Raises:
        DynamicShapeError: Names the operator, the dimension and the user's line.
    """
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target not in _ALIGNED:
            continue
        place = _ALIGNED[node.target]
        aligned = node.args[place] if len(node.args) > place else node.kwargs.get("align_corners")
        shape = node.meta["val"].shape
        for axis in range(2, len(shape)) if aligned else ():
            size = shape[axis]
            if isinstance(size, torch.SymInt) and _may_be_one(size, program.range_constraints):
                raise DynamicShapeError(
                    f"{node.target} with align_corners=True is computed in another way where a "
                    f"size is 1, and dimension {axis} may be 1 or not; give the size a minimum of "
                    "2, or use align_corners=False",
                    location=location_of_node(node),
                )


def _squeezed_axes(node: torch.fx.Node, rank: int) -> list[int]:
    if len(node.args) < 2:
        return list(range(rank))
    given: Any = node.args[1]
    axes = given if isinstance(given, (list, tuple)) else [given]
    return [axis % rank for axis in axes] if rank else []


def _may_be_one(size: torch.SymInt, ranges: Mapping[Any, Any]) -> bool:
    bounds = bound_sympy(size.node.expr, dict(ranges))
    return bool(bounds.lower <= 1) and bool(bounds.upper >= 1)
