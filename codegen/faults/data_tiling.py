"""Which products of matrices have their data arranged in tiles, where sizes vary.

IREE's data tiling takes every product. Of those that sum over a dynamic size, the values of an
attention for one, it fails to compile what arranges their operands («no basis element may be
statically non-positive», 3.13). A product that has the attribute which IREE would set itself is
taken, and then it takes no others.
"""

from __future__ import annotations

import re

from iree.compiler.ir import (
    ArrayAttr,
    Operation,
    RankedTensorType,
    ShapedType,
    UnitAttr,
    WalkResult,
)

_HINT = "iree.opt.data_tiling"
_PLACES = re.compile(r"d(\d+)")


def choose_products(module_op: Operation) -> None:
    """Mark the products of two matrices that sum over a static size.

    Args:
        module_op: A module at the end of the phase `global-optimization`; changed in place.
    """

    def visit(op: Operation) -> WalkResult:
        if op.name == "linalg.matmul" and _sums_over_static_size(op):
            op.attributes[_HINT] = UnitAttr.get(op.context)
        return WalkResult.ADVANCE

    module_op.walk(visit)


def _sums_over_static_size(product: Operation) -> bool:
    """Tell whether the last loop of a product, the one that sums, has a static size."""
    left = str(ArrayAttr(product.attributes["indexing_maps"])[0])
    loops, _, places = left.partition("->")
    summed = _PLACES.findall(places).index(_PLACES.findall(loops)[-1])
    shape = RankedTensorType(product.operands[0].type).shape
    return bool(shape[summed] != ShapedType.get_dynamic_size())
