"""Data tiling of the matrix products that reduce over a static size.

IREE's data tiling takes every product. For one that reduces over a dynamic size, such as the
product of attention weights and values, it fails to compile the encoding of the operands
(«no basis element may be statically non-positive», 3.13). Where any product has the attribute
that IREE would set itself, IREE sets none, and tiles only the products that have it.
"""

from __future__ import annotations

import re

from iree.compiler.ir import ArrayAttr, Operation, RankedTensorType, UnitAttr

from ..emission import DYNAMIC
from ..linalg import operations_in

_HINT = "iree.opt.data_tiling"
_LOOP = re.compile(r"d(\d+)")


def mark_static_matmuls(module_op: Operation) -> None:
    """Set the data tiling hint on each product of two matrices that reduces over a static size.

    Args:
        module_op: A module at the end of the phase `global-optimization`; changed in place.
    """
    for product in operations_in(module_op, "linalg.matmul"):
        if _reduces_static_size(product):
            product.attributes[_HINT] = UnitAttr.get(product.context)


def _reduces_static_size(product: Operation) -> bool:
    """Tell whether the reduction loop of a product, its last one, has a static size."""
    left = str(ArrayAttr(product.attributes["indexing_maps"])[0])
    loops, _, axes = left.partition("->")
    reduced = _LOOP.findall(axes).index(_LOOP.findall(loops)[-1])
    shape = RankedTensorType(product.operands[0].type).shape
    return bool(shape[reduced] != DYNAMIC)
