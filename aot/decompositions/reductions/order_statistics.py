"""Order statistics (k-th values, medians, modes) and searches in sorted sequences."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..real_types import ends_of
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("order statistics")

_NO_LOWERING = "no lowering"


def _select(x: Tensor, dim: int, place: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, indices = torch.sort(x, dim=dim)
    if isinstance(place, Tensor):
        values, indices = (torch.gather(part, dim, place) for part in (values, indices))
    else:
        values, indices = (part.narrow(dim, place, 1) for part in (values, indices))
    if keepdim:
        return values, indices
    return values.squeeze(dim), indices.squeeze(dim)


@FAMILY.decomposes(aten.kthvalue.default, reason="the lowering generates invalid code")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """`kthvalue`: the k-th smallest element, from 1, and its index."""
    return _select(x, dim, k - 1, keepdim)


def _median_place(x: Tensor, dim: int, *, skip_nan: bool) -> Tensor:
    """Return the index of the median in the sorted tensor, in which NaN comes last."""
    missing = torch.isnan(x).to(torch.int64).sum(dim, keepdim=True)
    length = x.shape[dim]
    if skip_nan:
        return torch.div((length - missing - 1).clamp(min=0), 2, rounding_mode="trunc")
    middle = torch.full_like(missing, (length - 1) // 2)
    return torch.where(missing > 0, length - missing, middle)


@FAMILY.decomposes(aten.median.dim, reason=_NO_LOWERING)
def median_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """`median.dim`: the lower median and its index; NaN if any element is."""
    place = _median_place(x, dim, skip_nan=False) if x.dim() else 0
    return _select(x, dim, place, keepdim)


@FAMILY.decomposes(aten.nanmedian.dim, reason=_NO_LOWERING)
def nanmedian_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """`nanmedian.dim`: the lower median of the elements that are not NaN, and its index."""
    place = _median_place(x, dim, skip_nan=True) if x.dim() else 0
    return _select(x, dim, place, keepdim)


@FAMILY.decomposes(aten.median.default, reason=_NO_LOWERING)
def median(x: Tensor) -> Tensor:
    """Return the lower median of all elements."""
    return torch.median(x.reshape(-1), 0)[0]


@FAMILY.decomposes(aten.nanmedian.default, reason=_NO_LOWERING)
def nanmedian(x: Tensor) -> Tensor:
    """Return the lower median of all elements that are not NaN."""
    return torch.nanmedian(x.reshape(-1), 0)[0]


def _count_before(boundaries: Tensor, values: Tensor, right: bool, out_int32: bool) -> Tensor:
    """Return the number of boundaries before each value."""
    edges, wanted = boundaries[..., None, :], values[..., None]
    before = edges <= wanted if right else edges < wanted
    return before.to(torch.int64).sum(-1).to(torch.int32 if out_int32 else torch.int64)


@FAMILY.decomposes(aten.searchsorted.Tensor, reason=_NO_LOWERING)
def searchsorted(
    sequence: Tensor,
    values: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """`searchsorted`: the indices at which values would be inserted into sorted sequences."""
    if sorter is not None:
        sequence = torch.gather(sequence, -1, sorter)
    right = right or side == "right"
    if sequence.dim() == 1:
        flat = _count_before(sequence, values.reshape(-1), right, out_int32)
        return flat.reshape(values.shape)
    return _count_before(sequence, values, right, out_int32)


@FAMILY.decomposes(aten.searchsorted.Scalar, reason=_NO_LOWERING)
def searchsorted_scalar(
    sequence: Tensor,
    value: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """`searchsorted.Scalar`: the index at which a number would be inserted."""
    one = torch.full((1,), value, dtype=sequence.dtype, device=sequence.device)
    return searchsorted(
        sequence, one, out_int32=out_int32, right=right, side=side, sorter=sorter
    ).reshape(())


@FAMILY.decomposes(
    aten.bucketize.Tensor, reason="the lowering gives some results a wrong element type"
)
def bucketize(
    values: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """`bucketize`: the bucket of each value."""
    return searchsorted(boundaries, values, out_int32=out_int32, right=right)


@FAMILY.decomposes(aten.mode.default, reason=_NO_LOWERING)
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """`mode`: the most frequent element, the smallest of several, and its last index."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if x.dtype is torch.bool or x.dtype.is_complex:
        return NotImplemented
    last = x.movedim(dim, -1)
    counts = (last[..., :, None] == last[..., None, :]).to(torch.int64).sum(-1)
    most = counts == counts.amax(-1, True)
    _, highest = ends_of(x.dtype)
    value = torch.where(most, last, highest).amin(-1, True)
    places = torch.arange(last.shape[-1], device=x.device)
    index = torch.where(last == value, places, -1).amax(-1, True)
    value, index = value.movedim(-1, dim), index.movedim(-1, dim)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


@FAMILY.decomposes(aten.max.dim, aten.min.dim, reason="tensors of rank 0 are refused")
def extreme_rank0(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    """`max.dim` and `min.dim` of rank 0: the tensor, and index 0."""
    if x.dim():
        return NotImplemented
    return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
