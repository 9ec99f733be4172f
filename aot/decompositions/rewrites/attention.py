"""Attention masks that leave a row nothing to attend to.

The compiler scales scores before it exponentiates, so that a mask of the smallest number overflows
to -inf and a row without any other score becomes NaN. torch is finite: 0 for rows hidden by -inf or
False, an average for rows lowered by a large number. Both cost one look at the mask.
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
    """Lower masks no further than half the smallest number, and zero the rows that see nothing."""
    anchor = inserter.anchor
    mask = anchor.args[_MASK] if len(anchor.args) > _MASK else anchor.kwargs.get("attn_mask")
    if not isinstance(mask, Node):
        return
    floor = torch.finfo(anchor.meta["val"].dtype).min / 2
    if mask.meta["val"].dtype is torch.bool:
        lowered = _lower_hidden(inserter, mask, anchor.meta["val"].dtype, floor)
        seen = inserter.call(aten.any.dim, mask, -1, True)
    else:
        lowered = inserter.call(aten.clamp_min.default, mask, floor)
        highest = inserter.call(aten.amax.default, mask, [-1], True)
        seen = inserter.call(aten.gt.Scalar, highest, float("-inf"))
    arguments = [*anchor.args[:_MASK], lowered, *anchor.args[_MASK + 1 :]]
    keywords = {key: given for key, given in anchor.kwargs.items() if key != "attn_mask"}
    attended = inserter.call(TARGETS[0], *arguments, value=anchor.meta["val"], **keywords)
    inserter.become(aten.where.ScalarOther, seen, attended, 0.0)


def _lower_hidden(inserter: Inserter, mask: Node, dtype: torch.dtype, floor: float) -> Node:
    options: dict[str, Any] = {"dtype": dtype, "device": mask.meta["val"].device}
    zero = inserter.call(aten.full.default, [], 0.0, **options)
    return inserter.call(aten.where.ScalarOther, mask, zero, floor)
