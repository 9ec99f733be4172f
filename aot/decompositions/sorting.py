"""Sorting and the largest elements, by counting and comparing.

Two sorts (or `topk`) of one shape in a program were given one buffer for their indices: the second
overwrote the first, without an error. Here an element's place is the count of those before it; the
largest few are found one after the other.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .family import Family

aten = torch.ops.aten

FAMILY = Family("sorting")

_REASON = "two of one shape overwrite each other's indices"

_MOST_STEPS = 64


def _ordered(x: Tensor) -> Tensor:
    """Return numbers that compare as torch sorts: NaN is as large as infinity, True as 1."""
    if x.dtype.is_floating_point:
        return torch.where(torch.isnan(x), torch.full_like(x, math.inf), x)
    return x.to(torch.int32) if x.dtype in (torch.bool, torch.uint8, torch.int8) else x


def _permutation(x: Tensor, descending: bool) -> Tensor:
    """Return which element comes at each place along the last dimension; ties keep their order."""
    places = torch.arange(x.shape[-1], device=x.device)
    here, other = x[..., :, None], x[..., None, :]
    before = other > here if descending else other < here
    earlier = torch.logical_and(other == here, places[None, :] < places[:, None])
    rank = torch.logical_or(before, earlier).to(torch.int64).sum(-1)
    hit = rank[..., None, :] == places[:, None]
    return torch.where(hit, places, 0).sum(-1)


def _sort(x: Tensor, dim: int, descending: bool) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    last = x.movedim(dim, -1)
    order = _permutation(_ordered(last), descending)
    return torch.gather(last, -1, order).movedim(-1, dim), order.movedim(-1, dim)


@FAMILY.decomposes(aten.sort.default, reason=_REASON)
def sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Return the sorted elements and where they were."""
    return _sort(x, dim, descending)


@FAMILY.decomposes(aten.sort.stable, reason=_REASON)
def sort_stable(
    x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the sorted elements and where they were; equal ones keep their order."""
    return _sort(x, dim, descending)


@FAMILY.decomposes(aten.argsort.default, reason=_REASON)
def argsort(x: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """Return where the sorted elements were."""
    return _sort(x, dim, descending)[1]


@FAMILY.decomposes(aten.argsort.stable, reason=_REASON)
def argsort_stable(x: Tensor, *, stable: bool, dim: int = -1, descending: bool = False) -> Tensor:
    """Return where the sorted elements were; equal ones keep their order."""
    return _sort(x, dim, descending)[1]


def _first_ones(x: Tensor, k: int, largest: bool) -> Tensor:
    """Return the indices of the k first elements along the last dimension, found in turn.

    Each step takes, of the elements that come after the last one found, the extreme value, and the
    first index that has it.
    """
    places = torch.arange(x.shape[-1], device=x.device)
    left = torch.ones_like(x, dtype=torch.int32) != 0
    limits = torch.finfo(x.dtype) if x.dtype.is_floating_point else torch.iinfo(x.dtype)
    infinity = math.inf if x.dtype.is_floating_point else None
    lowest = limits.min if infinity is None else -infinity
    highest = limits.max if infinity is None else infinity
    found = []
    for _ in range(k):
        candidates = torch.where(left, x, lowest if largest else highest)
        extreme = candidates.amax(-1, True) if largest else candidates.amin(-1, True)
        hit = torch.logical_and(left, x == extreme)
        index = torch.where(hit, places, x.shape[-1] - 1).amin(-1, True)
        found.append(index)
        left = torch.logical_and(left, places != index)
    return torch.cat(found, -1)


@FAMILY.decomposes(aten.topk.default, reason=_REASON)
def topk(
    x: Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """Return the k largest or smallest elements, in order, and where they are."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    last = x.movedim(dim, -1)
    key = _ordered(last)
    if isinstance(k, int) and 0 < k <= _MOST_STEPS:
        index = _first_ones(key, k, largest)
    else:
        index = _permutation(key, largest).narrow(-1, 0, k)
    return torch.gather(last, -1, index).movedim(-1, dim), index.movedim(-1, dim)
