"""Distances between rows: norms of their differences."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("distances")

_NO_LOWERING = "no lowering"


def _distances(x: Tensor, y: Tensor, p: float) -> Tensor:
    difference = (x - y).abs()
    if p == 0:
        return (difference != 0).to(x.dtype).sum(-1)
    if p == math.inf:
        return difference.amax(-1)
    if p == 1:
        return difference.sum(-1)
    if p == 2:
        return torch.sqrt((difference * difference).sum(-1))
    return torch.pow(torch.pow(difference, p).sum(-1), 1 / p)


@FAMILY.decomposes(aten._cdist_forward.default, reason=_NO_LOWERING)
def cdist(x: Tensor, y: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """`_cdist_forward`: the distances between all rows of x and all rows of y."""
    return _distances(x[..., :, None, :], y[..., None, :, :], p)


@FAMILY.decomposes(aten._pdist_forward.default, reason=_NO_LOWERING)
def pdist(x: Tensor, p: float = 2) -> Any:
    """`_pdist_forward`: the distances between all pairs of rows."""
    count = x.shape[0]
    if not isinstance(count, int):
        return NotImplemented
    rows, columns = torch.triu_indices(count, count, 1, device=x.device).unbind(0)
    return _distances(x.index_select(0, rows), x.index_select(0, columns), p)


@FAMILY.decomposes(aten.dist.default, reason=_NO_LOWERING)
def dist(x: Tensor, y: Tensor, p: Any = 2) -> Any:
    """`dist`: the norm of the difference."""
    return torch.linalg.vector_norm(x - y, p)
