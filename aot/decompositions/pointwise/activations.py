"""Activations that the compiler lowers wrongly, or refuses with some of their options."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("activations")


@FAMILY.decomposes(aten.log_softmax.int, reason="refused with a `dtype`")
def log_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
    """`log_softmax.int` with a `dtype`: log-softmax of the cast tensor."""
    return NotImplemented if dtype is None else torch.log_softmax(x.to(dtype), dim)


@FAMILY.decomposes(aten.prelu.default, reason="takes the last dimension for that of channels")
def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """`prelu`: x, scaled where it is negative by one slope, or by that of its channel."""
    if weight.numel() != 1 and x.dim() > 1:
        weight = weight.reshape([1, -1] + [1] * (x.dim() - 2))
    elif x.dim() == 0:
        weight = weight.reshape([])
    return torch.where(x > 0, x, weight * x)


@FAMILY.decomposes(aten.softshrink.default, reason="wrong at the threshold and for NaN")
def softshrink(x: Tensor, lambd: Any = 0.5) -> Tensor:
    """`softshrink`: x shrunk towards 0 by `lambd`."""
    moved = torch.where(x > 0, x - lambd, x + lambd)
    return torch.where(x.abs() <= lambd, torch.zeros_like(x), moved)
