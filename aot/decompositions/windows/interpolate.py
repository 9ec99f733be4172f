"""Interpolation: linear and nearest resizing, and sampling of 3-D grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..broadcasting import along
from ..real_types import in_single
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("interpolate")

_NO_LOWERING = "no lowering"


def truncated(size: Any) -> Any:
    """Return a size that was computed in floating point, truncated to an integer."""
    truncate: Any = torch.sym_int
    return truncate(size)


def _step(old: Any, size: Any, scale: float | None, *whole: tuple[Any, Any, float]) -> Any:
    """Return the distance between samples, in pixels of the argument.

    Args:
        old: The number of pixels.
        size: The number of samples.
        scale: The factor given, if any.
        whole: Pairs of numbers, with the step that torch takes in its stead where they are equal.
    """
    if not scale:
        return old / size
    result: Any = 1 / scale
    for one, other, step in whole:
        if is_static(one) and is_static(other):
            result = step if one == other else result
        else:
            equal = torch.full((), one) == torch.full((), other)
            result = torch.where(equal, torch.full((), step), result)
    return result


def at_least_one(size: Any) -> Any:
    """Return a size to divide by; no branch on it, which would be decided for all sizes."""
    largest: Any = torch.sym_max
    return max(size, 1) if is_static(size) else largest(size, 1)


def _linear(x: Tensor, dim: int, size: Any, align_corners: bool, scale: float | None) -> Tensor:
    """Return x resized linearly in one dimension; `scale` is the factor given, if any."""
    old = x.shape[dim]
    place = torch.arange(size, device=x.device).to(x.dtype)
    if align_corners:
        source = place * ((old - 1) / at_least_one(size - 1))  # a single place is 0
    else:
        source = ((place + 0.5) * _step(old, size, scale, (size, old, 1.0)) - 0.5).clamp(min=0.0)
    first = source.to(torch.int64).clamp(max=old - 1)
    second = (first + 1).clamp(max=old - 1)
    weight = along(source - first.to(x.dtype), dim, x.dim())
    low, high = x.index_select(dim, first), x.index_select(dim, second)
    return low + (high - low) * weight


def _resize(
    x: Tensor, sizes: Sequence[Any], align_corners: bool, scales: Sequence[float | None]
) -> Tensor:
    result = in_single(x)
    for axis, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
        result = _linear(result, 2 + axis, size, align_corners, scale)
    return result.to(x.dtype)


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
    """`upsample_linear1d.vec` and its kind: x resized to a size or by factors."""
    sizes, scales = _sizes_and_scales(x, output_size, scale_factors)
    return _resize(x, sizes, align_corners, scales)


@FAMILY.decomposes(
    aten.upsample_linear1d.default,
    aten.upsample_bilinear2d.default,
    aten.upsample_trilinear3d.default,
    reason=_NO_LOWERING,
)
def upsample_to_size(
    x: Tensor, output_size: Sequence[Any], align_corners: bool, *scales: float | None, **named: Any
) -> Tensor:
    """`upsample_linear1d` and its kind: x resized to a size, sampled at the given factors."""
    return _resize(x, output_size, align_corners, _all_scales(output_size, scales, named))


def _all_scales(
    output_size: Sequence[Any], scales: Sequence[float | None], named: Mapping[str, float | None]
) -> list[float | None]:
    """Return the factor given for each dimension, by position or name."""
    names = [f"scales_{letter}" for letter in "dhw"[-len(output_size) :]]
    if len(output_size) == 1:
        names = ["scales"]
    return [*scales, *(named.get(name) for name in names[len(scales) :])]


_SMALL = 128
"""Height and width of results, together, up to which torch resizes planes by a kernel of its own.

For larger ones it depends on the layout in memory, which is taken as row after row here.
"""


def _nearest(
    x: Tensor, sizes: Sequence[Any], scales: Sequence[float | None], centre: float
) -> Tensor:
    """Return x resized to the nearest pixel, sampled at offset `centre` in each output pixel."""
    plane = len(sizes) == 2 and not (is_static(sum(sizes)) and sum(sizes) > _SMALL)
    precision = torch.float64 if x.dtype is torch.float64 and not plane else torch.float32
    for axis, (size, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        old = x.shape[axis]
        whole = [(size, old, 1.0), (size, 2 * old, 0.5)] if plane and not centre else []
        place = torch.arange(size, device=x.device).to(precision)
        place = (place + centre if centre else place) * _step(old, size, scale, *whole)
        index = place.to(torch.float32).to(torch.int64).clamp(max=old - 1)
        x = x.index_select(axis, index)
    return x


def _sizes_and_scales(
    x: Tensor, output_size: Sequence[Any] | None, scale_factors: Sequence[float] | None
) -> tuple[Sequence[Any], Sequence[float | None]]:
    """Return the size and the factor for each dimension, of which one is given."""
    if output_size is not None:
        return output_size, [None] * len(output_size)
    assert scale_factors is not None
    pairs = zip(x.shape[2:], scale_factors, strict=True)
    return [truncated(size * factor) for size, factor in pairs], scale_factors


_NEAREST = (aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d)


@FAMILY.decomposes(
    *[packet.vec for packet in _NEAREST],
    reason="takes exact quotients where torch rounds to float32, and fractional factors do not "
    "compile",
)
def nearest_by_factor(
    x: Tensor, output_size: Sequence[Any] | None, scale_factors: Sequence[float] | None
) -> Any:
    """`upsample_nearest.vec`, unless it takes the pixels of exact quotients."""
    sizes, scales = _sizes_and_scales(x, output_size, scale_factors)
    exact = map(_repeats, scale_factors) if scale_factors else map(_exact, x.shape[2:], sizes)
    if all(exact):
        return NotImplemented
    return _nearest(x, sizes, scales, centre=0.0)


@FAMILY.decomposes(
    *[packet.default for packet in _NEAREST], reason="wrong where no multiple of the size is asked"
)
def nearest_to_size(
    x: Tensor, output_size: Sequence[Any], *scales: float | None, **named: float | None
) -> Tensor:
    """`upsample_nearest` to a size, sampled at the given factors."""
    return _nearest(x, output_size, _all_scales(output_size, scales, named), centre=0.0)


def _repeats(factor: float) -> bool:
    """Return whether a factor repeats each pixel: its inverse in float32 is not too small."""
    return float(factor).is_integer() and float(numpy.float32(1 / factor)) * factor >= 1


def _exact(old: Any, size: Any) -> bool:
    """Return whether the places of pixels have the same whole part if rounded to float32."""
    if not is_static(old) or not is_static(size):
        return False
    places = numpy.arange(size)
    rounded = (places.astype(numpy.float32) * numpy.float32(old / size)).astype(numpy.int64)
    return bool((rounded.clip(max=old - 1) == places * old // size).all())


_EXACT = (
    aten._upsample_nearest_exact1d, aten._upsample_nearest_exact2d, aten._upsample_nearest_exact3d,
)  # fmt: skip
_WRONG_EXACT = "the decomposition of torch is wrong in float32"


@FAMILY.decomposes(*[packet.vec for packet in _EXACT], reason=_WRONG_EXACT)
def nearest_exact(
    x: Tensor, output_size: Sequence[Any] | None, scale_factors: Sequence[float] | None
) -> Tensor:
    """`_upsample_nearest_exact.vec`: x resized to the pixel with the nearest centre."""
    return _nearest(x, *_sizes_and_scales(x, output_size, scale_factors), centre=0.5)


@FAMILY.decomposes(*[packet.default for packet in _EXACT], reason=_WRONG_EXACT)
def nearest_exact_to_size(
    x: Tensor, output_size: Sequence[Any], *scales: float | None, **named: float | None
) -> Tensor:
    """`_upsample_nearest_exact` to a size, sampled at the given factors."""
    return _nearest(x, output_size, _all_scales(output_size, scales, named), centre=0.5)


@FAMILY.decomposes(aten.grid_sampler_3d.default, reason=_NO_LOWERING)
def grid_sampler_3d(
    x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool
) -> Any:
    """`grid_sampler_3d`: x [n, c, depth, height, width] sampled trilinearly (0) or nearest (1)."""
    return _sampled(x, grid, interpolation, padding, align_corners)


@FAMILY.decomposes(
    aten.grid_sampler_2d.default,
    aten.grid_sampler.default,
    reason="torch's decomposition divides by a distance of 0 where a size is 1",
)
def grid_sampler_2d(
    x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool
) -> Any:
    """`grid_sampler_2d` that reflects pictures of dynamic sizes at the centres of their corners."""
    reflects = padding == 2 and align_corners and interpolation != 2
    if not reflects or x.dim() != 4 or all(is_static(size) for size in x.shape[2:]):
        return NotImplemented
    return _sampled(x, grid, interpolation, padding, align_corners)


def _sampled(
    x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool
) -> Tensor:
    sizes = x.shape[2:]
    # The last dimension of the grid is x, y, z: the sizes from the last to the first.
    points = [
        _in_pixels(grid[..., len(sizes) - 1 - axis], size, padding, align_corners)
        for axis, size in enumerate(sizes)
    ]
    if interpolation == 1:
        return _read(x, [torch.round(point) for point in points])
    total = torch.zeros((), dtype=x.dtype, device=x.device)
    for corner in range(1 << len(sizes)):
        places, weight = [], torch.ones((), dtype=x.dtype, device=x.device)
        for axis, point in enumerate(points):
            low = torch.floor(point)
            upper = corner >> axis & 1
            places.append(low + 1 if upper else low)
            weight = weight * (point - low if upper else 1 - (point - low))
        total = total + _read(x, places) * weight[:, None]
    return total


def _in_pixels(point: Tensor, size: Any, padding: int, align_corners: bool) -> Any:
    """Return coordinates in [-1, 1] as pixels, clamped to the borders (1) or reflected (2)."""
    place = (point + 1) / 2 * (size - 1) if align_corners else ((point + 1) * size - 1) / 2
    if padding == 2:
        low, span = (0.0, at_least_one(size - 1)) if align_corners else (-0.5, size)
        distance = (place - low).abs()
        turns = torch.floor(distance / span)
        rest = distance - turns * span
        odd = torch.remainder(turns, 2) == 1
        place = torch.where(odd, span - rest, rest) + low
    return place if padding == 0 else place.clamp(0, size - 1)


def _read(x: Tensor, places: Sequence[Tensor]) -> Tensor:
    """Return the pixels at integer coordinates [n, ...], 0 outside."""
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
