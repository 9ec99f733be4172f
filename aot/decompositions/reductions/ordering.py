"""Running extremes, order statistics and searches, from sorting and comparing."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("ordering")

_NO_LOWERING = "no lowering"


def _shifted(x: Tensor, dim: int, by: int, fill: Any) -> Tensor:
    """Return x moved by some places towards larger indices, filled at the start."""
    ends = [0, 0] * (x.dim() - 1 - dim) + [by, 0]
    return torch.constant_pad_nd(x.narrow(dim, 0, x.shape[dim] - by), ends, fill)


def _up_to_each(x: Tensor, dim: int, fill: Any) -> Tensor:
    """Return x once more along a new dimension before `dim`: at i, what is at i or before.

    For lengths that vary, at the price of the square of the length in memory.

    Args:
        x: A tensor.
        dim: Its dimension, counted from the front.
        fill: What stands for the elements after i.
    """
    length = x.shape[dim]
    place = torch.arange(length, device=x.device)
    before = place.unsqueeze(0) <= place.unsqueeze(1)
    before = before.reshape([length, length] + [1] * (x.dim() - 1 - dim))
    return torch.where(before, x.unsqueeze(dim), torch.full((), fill, dtype=x.dtype))


def _running(x: Tensor, dim: int, *, largest: bool) -> Any:
    """Return the running extreme and its last position, doubling the reach at each step."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    dim, length = dim % x.dim(), x.shape[dim % x.dim()]
    if not is_static(length):
        return NotImplemented
    index = torch.arange(length, device=x.device)
    index = index.reshape([-1 if axis == dim else 1 for axis in range(x.dim())]).expand(x.shape)
    values, reach = x, 1
    while reach < length:
        before = _shifted(values, dim, reach, 0)
        place = _shifted(index, dim, reach, -1)
        better = before > values if largest else before < values
        if x.dtype.is_floating_point:
            lost = torch.logical_and(torch.isnan(before), torch.logical_not(torch.isnan(values)))
            better = torch.logical_or(better, lost)
        better = torch.logical_and(better, place >= 0)
        values, index = torch.where(better, before, values), torch.where(better, place, index)
        reach *= 2
    return values.clone(), index.clone()


@FAMILY.decomposes(aten.cummax.default, reason=_NO_LOWERING)
def cummax(x: Tensor, dim: int) -> Any:
    """Return the running maximum and where it is."""
    return _running(x, dim, largest=True)


@FAMILY.decomposes(aten.cummin.default, reason=_NO_LOWERING)
def cummin(x: Tensor, dim: int) -> Any:
    """Return the running minimum and where it is."""
    return _running(x, dim, largest=False)


@FAMILY.decomposes(aten.logcumsumexp.default, reason="wrong numbers")
def logcumsumexp(x: Tensor, dim: int) -> Any:
    """Return the logarithm of the running sum of exponentials, doubling the reach at each step."""
    if x.dim() == 0:
        return x.clone()
    dim, length = dim % x.dim(), x.shape[dim % x.dim()]
    if x.dtype.is_complex:
        return NotImplemented
    if not is_static(length):
        return torch.logsumexp(_up_to_each(x, dim, -math.inf), dim + 1)
    values, reach = x, 1
    while reach < length:
        values = torch.logaddexp(values, _shifted(values, dim, reach, -math.inf))
        reach *= 2
    return values.clone()


@FAMILY.decomposes(aten.cumprod.default, reason="refused")
def cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """Return the running product, doubling the reach at each step."""
    whole = not x.dtype.is_floating_point and not x.dtype.is_complex
    values = x.to(dtype or (torch.int64 if whole else x.dtype))
    if x.dim() == 0:
        return values.clone()
    dim, length = dim % x.dim(), x.shape[dim % x.dim()]
    if values.dtype.is_complex:
        return NotImplemented
    if not is_static(length):
        return torch.prod(_up_to_each(values, dim, 1), dim + 1)
    reach = 1
    while reach < length:
        values = values * _shifted(values, dim, reach, 1)
        reach *= 2
    return values.clone()


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


@FAMILY.decomposes(aten.kthvalue.default, reason="the lowering makes invalid code")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the k-th smallest element, counted from 1, and where it is."""
    return _select(x, dim, k - 1, keepdim)


def _median_place(x: Tensor, dim: int, *, skip_nan: bool) -> Tensor:
    """Return the place of the median in the sorted tensor, where NaN comes last."""
    missing = torch.isnan(x).to(torch.int64).sum(dim, keepdim=True)
    length = x.shape[dim]
    if skip_nan:
        return torch.div((length - missing - 1).clamp(min=0), 2, rounding_mode="trunc")
    middle = torch.full_like(missing, (length - 1) // 2)
    return torch.where(missing > 0, length - missing, middle)


@FAMILY.decomposes(aten.median.dim, reason=_NO_LOWERING)
def median_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the lower median and where it is; NaN if there is one."""
    place = _median_place(x, dim, skip_nan=False) if x.dim() else 0
    return _select(x, dim, place, keepdim)


@FAMILY.decomposes(aten.nanmedian.dim, reason=_NO_LOWERING)
def nanmedian_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the lower median of the numbers that are not NaN, and where it is."""
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


def _places(boundaries: Tensor, values: Tensor, right: bool, out_int32: bool) -> Tensor:
    """Count, for each value, the boundaries before it."""
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
    """Return where values would be inserted into sorted sequences."""
    if sorter is not None:
        sequence = torch.gather(sequence, -1, sorter)
    right = right or side == "right"
    if sequence.dim() == 1:
        flat = _places(sequence, values.reshape(-1), right, out_int32)
        return flat.reshape(values.shape)
    return _places(sequence, values, right, out_int32)


@FAMILY.decomposes(aten.searchsorted.Scalar, reason=_NO_LOWERING)
def searchsorted_number(
    sequence: Tensor,
    value: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return where a number would be inserted into a sorted sequence."""
    one = torch.full((1,), value, dtype=sequence.dtype, device=sequence.device)
    return searchsorted(
        sequence, one, out_int32=out_int32, right=right, side=side, sorter=sorter
    ).reshape(())


@FAMILY.decomposes(aten.bucketize.Tensor, reason="wrong type of result on some inputs")
def bucketize(
    values: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Return the bucket of each value."""
    return searchsorted(boundaries, values, out_int32=out_int32, right=right)


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
    """Return the distances between all rows of x and all rows of y."""
    return _distances(x[..., :, None, :], y[..., None, :, :], p)


@FAMILY.decomposes(aten._pdist_forward.default, reason=_NO_LOWERING)
def pdist(x: Tensor, p: float = 2) -> Any:
    """Return the distances between all pairs of rows."""
    count = x.shape[0]
    if not is_static(count):
        return NotImplemented
    rows, columns = torch.triu_indices(count, count, 1, device=x.device).unbind(0)
    return _distances(x.index_select(0, rows), x.index_select(0, columns), p)


@FAMILY.decomposes(aten.dist.default, reason=_NO_LOWERING)
def dist(x: Tensor, y: Tensor, p: Any = 2) -> Any:
    """Return the norm of the difference."""
    return torch.linalg.vector_norm(x - y, p)


@FAMILY.decomposes(aten.max.dim, aten.min.dim, reason="tensors of rank 0 are refused")
def extreme_of_scalar(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    """Return a tensor of rank 0 itself, and that it is at place 0."""
    if x.dim():
        return NotImplemented
    return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
