"""Random numbers: integers like a tensor, normal and multinomial distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..registry import Family

aten = torch.ops.aten
prims = torch.ops.prims

FAMILY = Family("random numbers")

_REASON = "no lowering"


@FAMILY.decomposes(aten.randint_like.default, reason=_REASON)
def randint_like(x: Tensor, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    """`randint_like`: integers in [0, high)."""
    return randint_like_from(x, 0, high, dtype=dtype)


@FAMILY.decomposes(aten.randint_like.low_dtype, reason=_REASON)
def randint_like_from(x: Tensor, low: int, high: int, *, dtype: Any = None, **_: Any) -> Tensor:
    """`randint_like.low_dtype`: integers in [low, high)."""
    integers = torch.randint(low, high, x.shape, device=x.device)
    return integers.to(dtype or x.dtype)


@FAMILY.decomposes(prims.normal.default, reason=_REASON)
def normal(
    shape: Sequence[Any], *, mean: Any, std: Any, dtype: torch.dtype, device: Any, **_: Any
) -> Any:
    """`prims.normal`: normally distributed numbers."""
    if dtype.is_complex:
        return NotImplemented
    return torch.randn(list(shape), dtype=dtype, device=device) * std + mean


@FAMILY.decomposes(aten.multinomial.default, reason=_REASON)
def multinomial(
    weights: Tensor, count: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """`multinomial`: indices with probabilities in proportion to weights.

    Without replacement, the indices of the smallest of exponential variables with these rates.
    """
    wide = weights.to(torch.float32)
    if replacement:
        shares = wide.cumsum(-1)
        chance = torch.rand((*wide.shape[:-1], count), device=wide.device) * shares[..., -1:]
        index = (shares[..., None, :] <= chance[..., None]).to(torch.int64).sum(-1)
        return index.clamp(max=wide.shape[-1] - 1)
    times = -torch.log1p(-torch.rand(wide.shape, device=wide.device))
    rates = wide / times.clamp(min=1e-30)
    return torch.topk(rates, count, dim=-1)[1]
