"""Selections between values of different sizes, broadcast first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("selections")


@FAMILY.decomposes(
    aten.where.self, reason="one value twice is folded to that value, also where it is broadcast"
)
def where(condition: Tensor, x: Tensor, y: Tensor) -> Any:
    """`where` of one value twice: that value, of the size of the result."""
    if x is not y or (condition.dim() <= x.dim() and _same(condition, x)):
        return NotImplemented
    return torch.broadcast_tensors(condition, x)[1].clone()  # type: ignore[no-untyped-call]


@FAMILY.decomposes(
    aten.lerp.Tensor, aten.lerp.Scalar, reason="the result has the size of the first operand"
)
def lerp(start: Tensor, end: Tensor, weight: Any) -> Any:
    """`lerp` of operands of different sizes: of operands of one size."""
    others = [operand for operand in (end, weight) if isinstance(operand, Tensor)]
    if all(start.dim() >= other.dim() and _same(other, start) for other in others):
        return NotImplemented
    full, *_ = torch.broadcast_tensors(start, *others)  # type: ignore[no-untyped-call]
    return torch.lerp(full, end, weight)


def _same(small: Tensor, large: Tensor) -> bool:
    """Return whether a tensor is broadcast to the size of another that stays as it is."""
    pairs = zip(small.shape, large.shape[large.dim() - small.dim() :], strict=True)
    return all((is_static(size) and size == 1) or size == full for size, full in pairs)
