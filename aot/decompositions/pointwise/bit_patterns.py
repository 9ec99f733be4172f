"""Bit patterns: tensors read as elements of a narrower or wider type."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("bit_patterns")

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@FAMILY.decomposes(
    aten.view.dtype, reason="the lowering has as many elements as before in dynamic sizes"
)
def view_of_type(x: Tensor, dtype: torch.dtype) -> Any:
    """`view.dtype` to another width, by shifts of integers; the first element has the low bits."""
    if all(is_static(size) for size in x.shape) or x.dtype.is_complex or dtype.is_complex:
        return NotImplemented
    if dtype.itemsize < x.dtype.itemsize:
        return _split(x, dtype)
    return NotImplemented if dtype.itemsize == x.dtype.itemsize else _joined(x, dtype)


def _split(x: Tensor, dtype: torch.dtype) -> Tensor:
    bits, part = _as(x, _INTEGERS[x.dtype.itemsize]), _INTEGERS[dtype.itemsize]
    width = 8 * dtype.itemsize
    parts = [(bits >> place).to(part) for place in range(0, 8 * x.dtype.itemsize, width)]
    return _as(torch.stack(parts, -1).flatten(-2), dtype)


def _joined(x: Tensor, dtype: torch.dtype) -> Tensor:
    count, whole = dtype.itemsize // x.dtype.itemsize, _INTEGERS[dtype.itemsize]
    width = 8 * x.dtype.itemsize
    parts = _as(x, _INTEGERS[x.dtype.itemsize]).reshape(*x.shape[:-1], x.shape[-1] // count, count)
    wide = parts.to(whole) & ((1 << width) - 1)
    bits = wide[..., 0]
    for place in range(1, count):
        bits = bits | (wide[..., place] << (width * place))
    return _as(bits, dtype)


def _as(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x as another type of the same width."""
    if x.dtype is dtype:
        return x
    if dtype is torch.bool:
        return x != 0
    whole = not (x.dtype.is_floating_point or dtype.is_floating_point)
    return x.to(dtype) if whole else aten.view.dtype(x, dtype)
