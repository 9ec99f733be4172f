"""Conversions to float8_e4m3fn, which torch saturates and the compiler makes NaN.

The type has no infinity: what is beyond its greatest number becomes that number in torch (2.13).
The compiler has no code for conversions from other types than float32.
"""

from __future__ import annotations

import torch
from torch.fx import Node

from .inserter import Inserter

aten = torch.ops.aten

TARGETS = (
    aten._to_copy.default, aten.to.dtype, aten.to.dtype_layout,
    torch.ops.prims.convert_element_type.default,
)  # fmt: skip

_SATURATING = torch.float8_e4m3fn
_TYPES = (_SATURATING, torch.float8_e5m2)
_NARROW = (torch.bool, torch.int8, torch.uint8)
"""Types without a number beyond the range."""


def rewrite_conversion(inserter: Inserter) -> None:
    """Convert from float32, as torch does, clamped to the range of the type that saturates."""
    source, *rest = inserter.anchor.args
    wanted = inserter.anchor.meta["val"].dtype
    if wanted not in _TYPES or not isinstance(source, Node):
        return
    dtype = source.meta["val"].dtype
    if dtype is wanted:
        return
    if dtype is not torch.float32:
        source = inserter.call(torch.ops.prims.convert_element_type.default, source, torch.float32)
    if wanted is _SATURATING and dtype not in _NARROW:
        source = inserter.call(aten.clamp.default, source, -448.0, 448.0)
    inserter.anchor.args = (source, *rest)
