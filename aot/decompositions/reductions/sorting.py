"""Sorting and the largest elements.

The compiler gives two sorts (or `topk`) of one shape in a program one buffer for their indices:
the second overwrites the first, without an error; and each takes time that grows as the square of
the length. Here short vectors are sorted by counting the elements before each; long ones by a
network of exchanges in a loop, n log(n)^2 in all; the largest few are found one after the other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..real_types import ends_of
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("sorting")

_REASON = "two of one shape overwrite each other's indices"

_SHORT = 64
"""Up to this length vectors are sorted by counting; all are where a size varies: the compiler has
crashed and been wrong on several loops over tensors of sizes that vary."""

_MOST_STEPS = 64
"""Up to this many of the largest elements are found one after the other."""


def _ordered(x: Tensor) -> Tensor:
    """Return numbers that can be compared as torch sorts: True as 1."""
    if x.dtype.is_floating_point:
        return x
    return x.to(torch.int32) if x.dtype in (torch.bool, torch.uint8, torch.int8) else x


def _before(a: Tensor, b: Tensor, descending: bool) -> Tensor:
    """Return whether a comes before b; NaN is larger than all else."""
    before = a > b if descending else a < b
    if not a.dtype.is_floating_point:
        return before
    first, second = (a, b) if descending else (b, a)
    larger = torch.logical_and(torch.isnan(first), torch.logical_not(torch.isnan(second)))
    return torch.logical_or(before, larger)


def _permutation(x: Tensor, descending: bool) -> Tensor:
    """Return which element comes at each place along the last dimension; ties keep their order."""
    fixed = all(is_static(size) for size in x.shape)
    sort = _by_exchanges if fixed and x.shape[-1] > _SHORT else _by_counting
    return sort(x, descending)


def _by_counting(x: Tensor, descending: bool) -> Tensor:
    places = torch.arange(x.shape[-1], device=x.device)
    here, other = x[..., :, None], x[..., None, :]
    before = _before(other, here, descending)
    after = _before(here, other, descending)
    tied = torch.logical_not(torch.logical_or(before, after))
    earlier = torch.logical_and(tied, places[None, :] < places[:, None])
    rank = torch.logical_or(before, earlier).to(torch.int64).sum(-1)
    hit = rank[..., None, :] == places[:, None]
    return torch.where(hit, places, 0).sum(-1)


def _by_exchanges(x: Tensor, descending: bool) -> Tensor:
    """Sort blocks of 2, 4, 8, ... elements: mirrored halves are compared, then their quarters.

    Every exchange brings the earlier element to the lower place, so that what would lie past the
    end never moves, and the length need not be a power of 2.
    """
    places = torch.arange(x.shape[-1], device=x.device)
    length = torch.full((), x.shape[-1], dtype=torch.int64, device=x.device)

    def more(block: Tensor, mask: Tensor, x: Tensor, index: Tensor, *around: Tensor) -> Tensor:
        return block < 2 * around[1]

    def exchange(block: Tensor, mask: Tensor, x: Tensor, index: Tensor, *around: Tensor) -> Any:
        places, length = around
        partner = torch.bitwise_xor(places, mask)
        partner = torch.where(partner < length, partner, places)
        other, number = x.index_select(-1, partner), index.index_select(-1, partner)
        after, before = _before(other, x, descending), _before(x, other, descending)
        tied = torch.logical_not(torch.logical_or(after, before))
        after = torch.logical_or(after, torch.logical_and(tied, number < index))
        before = torch.logical_or(before, torch.logical_and(tied, index < number))
        lower, upper = places < partner, places > partner  # onnxruntime chooses no bools
        taken = torch.logical_or(torch.logical_and(lower, after), torch.logical_and(upper, before))
        quarter = torch.div(block, 4, rounding_mode="trunc")
        half = torch.div(mask, 2, rounding_mode="trunc")
        following = torch.where(mask == block - 1, quarter, half)
        done = following == 0
        larger = torch.where(done, 2 * block, block)
        following = torch.where(done, larger - 1, following)
        return larger, following, torch.where(taken, other, x), torch.where(taken, number, index)

    start = torch.full_like(length, 2), torch.full_like(length, 1)
    index = places.expand(x.shape).clone()
    first = x.clone(memory_format=torch.contiguous_format)
    loop = torch.ops.higher_order.while_loop
    found: Tensor = loop(more, exchange, (*start, first, index), (places, length))[3]
    return found


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

    Each step takes, of the elements that are left, the extreme value, and the first index that has
    it. NaN is the largest.
    """
    places = torch.arange(x.shape[-1], device=x.device)
    left = torch.ones_like(x, dtype=torch.int32) != 0
    floating = x.dtype.is_floating_point
    lowest, highest = ends_of(x.dtype)
    missing = torch.isnan(x) if floating else None
    x = x if missing is None else torch.where(missing, highest, x)
    found = []
    for _ in range(k):
        candidates = torch.where(left, x, lowest if largest else highest)
        extreme = candidates.amax(-1, True) if largest else candidates.amin(-1, True)
        hit = torch.logical_and(left, x == extreme)
        if missing is not None:  # infinity and NaN are one in x
            preferred = torch.logical_and(hit, missing if largest else torch.logical_not(missing))
            none = torch.logical_not(preferred.any(-1, True))
            hit = torch.logical_or(preferred, torch.logical_and(hit, none))
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
    if is_static(k) and 0 < k <= _MOST_STEPS:
        index = _first_ones(key, k, largest)
    else:
        index = _permutation(key, largest).narrow(-1, 0, k)
    return torch.gather(last, -1, index).movedim(-1, dim), index.movedim(-1, dim)
