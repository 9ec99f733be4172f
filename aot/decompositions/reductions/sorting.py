"""Sorts and top-k.

The compiler allocates one buffer for the indices of all sorts (or `topk`) of one shape in a
program, so that the second overwrites the first without an error; and its sorts take quadratic
time. Here short vectors are sorted by rank (the number of elements before each), long ones by a
bitonic network in a loop, O(n log(n)^2); a small top-k is a sequence of reductions.
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

_REASON = "two sorts of one shape share the buffer of their indices"

_SHORT = 64
"""Up to this length vectors are sorted by rank. So are all with a dynamic size: the compiler has
crashed on, or miscompiled, several loops over tensors of dynamic sizes."""

_MOST_STEPS = 64
"""The largest k for which the largest elements are found by k reductions."""


def _ordered(x: Tensor) -> Tensor:
    """Return values that compare as torch sorts them: bool and one-byte integers as int32."""
    if x.dtype.is_floating_point:
        return x
    return x.to(torch.int32) if x.dtype in (torch.bool, torch.uint8, torch.int8) else x


def _before(a: Tensor, b: Tensor, descending: bool) -> Tensor:
    """Return whether a comes before b in the order; NaN is the largest."""
    before = a > b if descending else a < b
    if not a.dtype.is_floating_point:
        return before
    first, second = (a, b) if descending else (b, a)
    larger = torch.logical_and(torch.isnan(first), torch.logical_not(torch.isnan(second)))
    return torch.logical_or(before, larger)


def _permutation(x: Tensor, descending: bool) -> Tensor:
    """Return the stable permutation that sorts the last dimension."""
    static = all(is_static(size) for size in x.shape)
    sort = _bitonic_sort if static and x.shape[-1] > _SHORT else _rank_sort
    return sort(x, descending)


def _rank_sort(x: Tensor, descending: bool) -> Tensor:
    places = torch.arange(x.shape[-1], device=x.device)
    here, other = x[..., :, None], x[..., None, :]
    before = _before(other, here, descending)
    after = _before(here, other, descending)
    tied = torch.logical_not(torch.logical_or(before, after))
    earlier = torch.logical_and(tied, places[None, :] < places[:, None])
    rank = torch.logical_or(before, earlier).to(torch.int64).sum(-1)
    hit = rank[..., None, :] == places[:, None]
    return torch.where(hit, places, 0).sum(-1)


def _bitonic_sort(x: Tensor, descending: bool) -> Tensor:
    """Return the permutation by a bitonic network over blocks of 2, 4, 8, ... elements.

    Each block compares mirrored halves first. Every exchange moves the earlier element to the lower
    index, so that padding past the end would never move: the length need not be a power of 2.
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
        lower, upper = places < partner, places > partner  # onnxruntime has no `where` of bools
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


def _back(result: Tensor, dim: int) -> Tensor:
    """Move the last dimension back, to a result that is contiguous as that of eager.

    A reshape of another would be a copy for torch.export, which then loses what is written to it.
    """
    return result.movedim(-1, dim).contiguous()


def _sort(x: Tensor, dim: int, descending: bool) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    last = x.movedim(dim, -1)
    order = _permutation(_ordered(last), descending)
    return _back(torch.gather(last, -1, order), dim), _back(order, dim)


@FAMILY.decomposes(aten.sort.default, reason=_REASON)
def sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """`sort`: the sorted elements and their indices."""
    return _sort(x, dim, descending)


@FAMILY.decomposes(aten.sort.stable, reason=_REASON)
def sort_stable(
    x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """`sort.stable`: the sorted elements and their indices."""
    return _sort(x, dim, descending)


@FAMILY.decomposes(aten.argsort.default, reason=_REASON)
def argsort(x: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """`argsort`: the indices that sort the tensor."""
    return _sort(x, dim, descending)[1]


@FAMILY.decomposes(aten.argsort.stable, reason=_REASON)
def argsort_stable(x: Tensor, *, stable: bool, dim: int = -1, descending: bool = False) -> Tensor:
    """`argsort.stable`: the indices that sort the tensor, with ties in order."""
    return _sort(x, dim, descending)[1]


def _extract_extremes(x: Tensor, k: int, largest: bool) -> Tensor:
    """Return the indices of the k largest or smallest elements along the last dimension.

    Each step takes the extreme of the remaining elements, and its first index. NaN is the largest.
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
        if missing is not None:  # x has infinity in place of NaN
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
    """`topk`: the k largest or smallest elements, in order, and their indices."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    last = x.movedim(dim, -1)
    key = _ordered(last)
    if is_static(k) and 0 < k <= _MOST_STEPS:
        index = _extract_extremes(key, k, largest)
    else:
        index = _permutation(key, largest).narrow(-1, 0, k)
    return _back(torch.gather(last, -1, index), dim), _back(index, dim)


@FAMILY.decomposes(
    aten.isin.Tensor_Tensor, reason="torch reads the first of no test elements, where none may be"
)
def isin(
    elements: Tensor, tests: Tensor, *, assume_unique: bool = False, invert: bool = False
) -> Any:
    """`isin` of a dynamic number of test elements, which may be none."""
    if is_static(tests.numel()):
        return NotImplemented
    ordered, _ = torch.sort(tests.flatten())
    flat = elements.flatten()
    place = torch.searchsorted(ordered, flat)
    found = torch.constant_pad_nd(ordered, [0, 1])[place] == flat
    found = torch.logical_and(found, place < ordered.shape[0]).reshape(elements.shape)
    return torch.logical_not(found) if invert else found
