"""Attention masks with fully masked rows.

The compiler scales scores before the exponential, so that a mask of the lowest number overflows to
-inf, and a row without any other score becomes NaN. torch is finite: 0 for rows masked by -inf or
False, the mean of values for rows masked by a large negative number.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from .inserter import Inserter

aten = torch.ops.aten

TARGETS = (aten.scaled_dot_product_attention.default,)

_MASK = 3


def rewrite_attention(inserter: Inserter) -> None:
    """Clamp masks to half the lowest number, and set fully masked rows to zero."""
    anchor = inserter.anchor
    mask = anchor.args[_MASK] if len(anchor.args) > _MASK else anchor.kwargs.get("attn_mask")
    if not isinstance(mask, Node):
        return
    floor = torch.finfo(anchor.meta["val"].dtype).min / 2
    if mask.meta["val"].dtype is torch.bool:
        lowered = _additive_mask(inserter, mask, anchor.meta["val"].dtype, floor)
        seen = inserter.call(aten.any.dim, mask, -1, True)
    else:
        lowered = inserter.call(aten.clamp_min.default, mask, floor)
        highest = inserter.call(aten.amax.default, mask, [-1], True)
        seen = inserter.call(aten.gt.Scalar, highest, float("-inf"))
    arguments = [*anchor.args[:_MASK], lowered, *anchor.args[_MASK + 1 :]]
    keywords = {key: given for key, given in anchor.kwargs.items() if key != "attn_mask"}
    attended = inserter.call(TARGETS[0], *arguments, value=anchor.meta["val"], **keywords)
    inserter.become(aten.where.ScalarOther, seen, attended, 0.0)


def _additive_mask(inserter: Inserter, mask: Node, dtype: torch.dtype, floor: float) -> Node:
    options: dict[str, Any] = {"dtype": dtype, "device": mask.meta["val"].device}
    zero = inserter.call(aten.full.default, [], 0.0, **options)
    return inserter.call(aten.where.ScalarOther, mask, zero, floor)
