"""Resizing, by linear interpolation or by single pixels, one dimension after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .family import Family

aten = torch.ops.aten

FAMILY = Family("sampling")

_NO_LOWERING = "no lowering"


def whole(size: Any) -> Any:
    """Return a size, computed in floating point, cut to an integer."""
    cut: Any = torch.sym_int
    return cut(size)


def _linear(x: Tensor, dim: int, size: Any, align_corners: bool, scale: float | None) -> Tensor:
    """Return x resized in one dimension; `scale` is the factor that the user gave, if any."""
    old = x.shape[dim]
    place = torch.arange(size, device=x.device).to(torch.float32)
    if align_corners:
        source = place * ((old - 1) / (size - 1)) if size != 1 else place
    else:
        step = 1 / scale if scale else old / size
        source = ((place + 0.5) * step - 0.5).clamp(min=0.0)
    first = source.to(torch.int64).clamp(max=old - 1)
    second = (first + 1).clamp(max=old - 1)
    weight = (source - first.to(torch.float32)).to(x.dtype)
    weight = weight.reshape([-1 if axis == dim else 1 for axis in range(x.dim())])
    low, high = x.index_select(dim, first), x.index_select(dim, second)
    return low + (high - low) * weight


def _resize(
    x: Tensor, sizes: Sequence[Any], align_corners: bool, scales: Sequence[float | None]
) -> Tensor:
    for axis, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
        x = _linear(x, 2 + axis, size, align_corners, scale)
    return x


@FAMILY.decomposes(
    aten.upsample_linear1d.vec,
    aten.upsample_bilinear2d.vec,
    aten.upsample_trilinear3d.vec,
    reason=_NO_LOWERING,
)
def upsample_by_factor(
    x: Tensor,
    output_size: Sequence[Any] | None,
    align_corners: bool,
    scale_factors: Sequence[float] | None,
) -> Tensor:
    """Return x resized to a size or by factors."""
    if output_size is not None:
        return _resize(x, output_size, align_corners, [None] * len(output_size))
    assert scale_factors is not None
    pairs = zip(x.shape[2:], scale_factors, strict=True)
    sizes = [whole(size * factor) for size, factor in pairs]
    return _resize(x, sizes, align_corners, scale_factors)


@FAMILY.decomposes(
    aten.upsample_linear1d.default,
    aten.upsample_bilinear2d.default,
    aten.upsample_trilinear3d.default,
    reason=_NO_LOWERING,
)
def upsample_to_size(
    x: Tensor, output_size: Sequence[Any], align_corners: bool, *scales: float | None, **named: Any
) -> Tensor:
    """Return x resized to a size; the factors decide where the points are."""
    names = [f"scales_{letter}" for letter in "dhw"[-len(output_size) :]]
    if len(output_size) == 1:
        names = ["scales"]
    given = [*scales, *(named.get(name) for name in names[len(scales) :])]
    return _resize(x, output_size, align_corners, given)


def _nearest(
    x: Tensor, output_size: Sequence[Any] | None, scales: Sequence[float | None], centre: float
) -> Tensor:
    """Return x resized by single pixels; `centre` is where in an output pixel its place is read."""
    for axis, scale in enumerate(scales, 2):
        old = x.shape[axis]
        size = output_size[axis - 2] if output_size else whole(old * (scale or 1))
        step = 1 / scale if scale else old / size
        place = torch.arange(size, device=x.device).to(torch.float32)
        place = (place + centre if centre else place) * step
        x = x.index_select(axis, place.to(torch.int64).clamp(max=old - 1))
    return x


@FAMILY.decomposes(
    aten.upsample_nearest1d.vec,
    aten.upsample_nearest2d.vec,
    aten.upsample_nearest3d.vec,
    reason="factors that are not whole compute in float64, which does not compile",
)
def nearest_by_factor(
    x: Tensor, output_size: Sequence[Any] | None, scale_factors: Sequence[float] | None
) -> Any:
    """Return x resized by the nearest pixel, for factors that are not whole."""
    if not scale_factors or all(float(factor).is_integer() for factor in scale_factors):
        return NotImplemented
    return _nearest(x, output_size, scale_factors, centre=0.0)


@FAMILY.decomposes(
    aten._upsample_nearest_exact1d.vec,
    aten._upsample_nearest_exact2d.vec,
    aten._upsample_nearest_exact3d.vec,
    reason="torch's own decomposition gives wrong numbers in float32",
)
def nearest_exact(
    x: Tensor, output_size: Sequence[Any] | None, scale_factors: Sequence[float] | None
) -> Tensor:
    """Return x resized by the pixel whose centre is nearest."""
    scales: Sequence[float | None] = scale_factors or [None] * (x.dim() - 2)
    return _nearest(x, output_size, scales, centre=0.5)
