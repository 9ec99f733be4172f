"""Resizing, by linear interpolation or by single pixels, one dimension after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..registry import Family

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


def _smoothing(old: int, size: int, align_corners: bool, scale: float | None, like: Tensor) -> Any:
    """Return the weights [size, old] of a resize by triangles as wide as the pixels skipped."""
    if align_corners:
        step = (old - 1) / (size - 1) if size > 1 else 0.0
    else:
        step = 1 / scale if scale else old / size
    support = max(step, 1.0)
    centre = (torch.arange(size, device=like.device).to(torch.float32) + 0.5) * step
    place = torch.arange(old, device=like.device).to(torch.float32) + 0.5
    weight = (1 - (place[None] - centre[:, None]).abs() / support).clamp(min=0.0)
    return (weight / weight.sum(1, keepdim=True)).to(like.dtype)


@FAMILY.decomposes(aten._upsample_bilinear2d_aa.default, reason=_NO_LOWERING)
def resize_smoothly(
    x: Tensor,
    output_size: Sequence[Any],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Any:
    """Return x resized linearly, with all pixels counted where it gets smaller."""
    rows, columns = x.shape[-2:]
    if not all(is_static(size) for size in (rows, columns, *output_size)):
        return NotImplemented
    down = _smoothing(rows, output_size[0], align_corners, scales_h, x)
    across = _smoothing(columns, output_size[1], align_corners, scales_w, x)
    return torch.matmul(down, torch.matmul(x, across.T))


@FAMILY.decomposes(aten.grid_sampler_3d.default, reason=_NO_LOWERING)
def grid_sampler_3d(
    x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool
) -> Any:
    """Return x [n, c, depth, height, width] read at points, by 8 neighbours (0) or one (1)."""
    sizes = x.shape[-3:]
    # The last dimension of the grid is x, y, z: the sizes from the last to the first.
    points = [
        _in_pixels(grid[..., 2 - axis], size, padding, align_corners)
        for axis, size in enumerate(sizes)
    ]
    if interpolation == 1:
        return _read(x, [torch.round(point) for point in points])
    total = torch.zeros((), dtype=x.dtype, device=x.device)
    for corner in range(8):
        places, weight = [], torch.ones((), dtype=x.dtype, device=x.device)
        for axis, point in enumerate(points):
            low = torch.floor(point)
            upper = corner >> axis & 1
            places.append(low + 1 if upper else low)
            weight = weight * (point - low if upper else 1 - (point - low))
        total = total + _read(x, places) * weight[:, None]
    return total


def _in_pixels(point: Tensor, size: Any, padding: int, align_corners: bool) -> Any:
    """Return coordinates from -1 to 1 in pixels, kept within the borders (1) or mirrored (2)."""
    place = (point + 1) / 2 * (size - 1) if align_corners else ((point + 1) * size - 1) / 2
    if padding == 2:
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, 1.0 * size)
        distance = (place - low).abs()
        turns = torch.floor(distance / span)
        rest = distance - turns * span
        odd = torch.remainder(turns, 2) == 1
        place = torch.where(odd, span - rest, rest) + low
    return place if padding == 0 else place.clamp(0, size - 1)


def _read(x: Tensor, places: Sequence[Tensor]) -> Tensor:
    """Return the pixels at whole coordinates [n, ...], 0 outside."""
    sizes = x.shape[2:]
    flat = torch.zeros((), dtype=torch.int64, device=x.device)
    inside = torch.ones((), dtype=torch.int32, device=x.device) != 0
    for place, size in zip(places, sizes, strict=True):
        within = torch.logical_and(place >= 0, place <= size - 1)
        inside = torch.logical_and(inside, within)
        flat = flat * size + place.clamp(0, size - 1).to(torch.int64)
    spread = (x.shape[0], x.shape[1], *flat.shape[1:])
    index = flat[:, None].expand(spread).flatten(2)
    found = torch.gather(x.flatten(2), 2, index).reshape(spread)
    return torch.where(inside[:, None], found, 0.0)
