"""Scans: cumulative maxima, sums, products and logsumexp, by doubling the reach at each step."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..broadcasting import along
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("scans")

_NO_LOWERING = "no lowering"


def _shifted(x: Tensor, dim: int, by: int, fill: Any) -> Tensor:
    """Return x shifted towards larger indices along `dim`, filled at the start."""
    ends = [0, 0] * (x.dim() - 1 - dim) + [by, 0]
    return torch.constant_pad_nd(x.narrow(dim, 0, x.shape[dim] - by), ends, fill)


def _prefixes(x: Tensor, dim: int, fill: Any) -> Tensor:
    """Return x with a new dimension before `dim`, whose slice i holds the elements up to i.

    Used for dynamic lengths; memory is quadratic in the length.

    Args:
        x: A tensor.
        dim: The dimension of the scan, not negative.
        fill: The value in place of the elements after i.
    """
    length = x.shape[dim]
    place = torch.arange(length, device=x.device)
    before = place.unsqueeze(0) <= place.unsqueeze(1)
    before = before.reshape([length, length] + [1] * (x.dim() - 1 - dim))
    return torch.where(before, x.unsqueeze(dim), torch.full((), fill, dtype=x.dtype))


def _cumulative_extreme(x: Tensor, dim: int, *, largest: bool) -> Any:
    """Return the cumulative extreme and its last index, doubling the reach at each step."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    dim, length = dim % x.dim(), x.shape[dim % x.dim()]
    if not is_static(length):
        return NotImplemented
    index = torch.arange(length, device=x.device)
    index = along(index, dim, x.dim()).expand(x.shape)
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
    """Return the cumulative maximum and its index."""
    return _cumulative_extreme(x, dim, largest=True)


@FAMILY.decomposes(aten.cummin.default, reason=_NO_LOWERING)
def cummin(x: Tensor, dim: int) -> Any:
    """Return the cumulative minimum and its index."""
    return _cumulative_extreme(x, dim, largest=False)


@FAMILY.decomposes(aten.logcumsumexp.default, reason="wrong results")
def logcumsumexp(x: Tensor, dim: int) -> Any:
    """Return the cumulative logsumexp, doubling the reach at each step."""
    if x.dim() == 0:
        return x.clone()
    dim, length = dim % x.dim(), x.shape[dim % x.dim()]
    if x.dtype.is_complex:
        return NotImplemented
    if not is_static(length):
        return torch.logsumexp(_prefixes(x, dim, -math.inf), dim + 1)
    values, reach = x, 1
    while reach < length:
        values = torch.logaddexp(values, _shifted(values, dim, reach, -math.inf))
        reach *= 2
    return values.clone()


@FAMILY.decomposes(aten.cumprod.default, reason="refused")
def cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """`cumprod`, doubling the reach at each step."""
    integral = not x.dtype.is_floating_point and not x.dtype.is_complex
    values = x.to(dtype or (torch.int64 if integral else x.dtype))
    if x.dim() == 0:
        return values.clone()
    dim, length = dim % x.dim(), x.shape[dim % x.dim()]
    if values.dtype.is_complex:
        return NotImplemented
    if not is_static(length):
        return torch.prod(_prefixes(values, dim, 1), dim + 1)
    reach = 1
    while reach < length:
        values = values * _shifted(values, dim, reach, 1)
        reach *= 2
    return values.clone()


@FAMILY.decomposes(aten.cumsum.default, reason="rank 0 is refused")
def cumsum_rank0(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """`cumsum` of rank 0: the tensor, integers as int64."""
    if x.dim():
        return NotImplemented
    integral = not (x.dtype.is_floating_point or x.dtype.is_complex)
    return x.to(dtype or (torch.int64 if integral else x.dtype)).clone()
