"""Max pooling with indices and of windows of several sizes, by gathering their elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ...spec.sizes import is_static
from ..registry import Decomposition, Family
from .explicit_padding import REASON, Window, each, explicit_padding, windows_of

aten = torch.ops.aten

FAMILY = Family("pooling with indices")


def _maxima(x: Tensor, places: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window over the last dimensions, and its flat index.

    Args:
        x: A tensor with any leading dimensions.
        places: For each windowed dimension the index of each element of each window, of shape
            [..., windows, elements]; indices out of range read -inf. Leading dimensions, if any,
            are those of x.
    """
    count = len(places)
    sizes = x.shape[-count:]
    lead = places[0].shape[:-2]
    flat = torch.zeros((), dtype=torch.int64, device=x.device)
    inside = torch.ones((), dtype=torch.int32, device=x.device) != 0
    for axis, (place, size) in enumerate(zip(places, sizes, strict=True)):
        shape = [1] * (2 * count)
        shape[axis], shape[count + axis] = place.shape[-2:]
        spread = place.reshape(*lead, *shape)
        flat = flat * size + spread.clamp(0, size - 1)
        inside = torch.logical_and(inside, torch.logical_and(spread >= 0, spread < size))
    windows = flat.shape[len(lead) : len(lead) + count]
    flat = flat.flatten(-count).flatten(len(lead), -2)
    inside = inside.flatten(-count).flatten(len(lead), -2)
    values = x.flatten(-count)
    spread_shape = (*values.shape[:-1], *flat.shape[-2:])
    flat, inside = flat.expand(spread_shape), inside.expand(spread_shape)
    found = torch.gather(values, -1, flat.flatten(-2)).reshape(spread_shape)
    found = torch.where(inside, found, -math.inf)
    best = found.argmax(-1, keepdim=True)
    result = (*values.shape[:-1], *windows)
    value = torch.gather(found, -1, best).reshape(result)
    return value, torch.gather(flat, -1, best).reshape(result)


def _elements(window: Window, x: Tensor) -> Tensor:
    """Return the index of each element of each window, of shape [windows, elements]."""
    starts = torch.arange(window.count, device=x.device) * window.stride - window.padding
    return starts[:, None] + torch.arange(window.kernel, device=x.device) * window.dilation


def _with_indices(dimensions: int) -> Decomposition:
    """Return max pooling with indices, for geometries that the compiler refuses."""

    def decomposition(
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        sizes = x.shape[-dimensions:]
        if not (x.dtype.is_floating_point and all(is_static(size) for size in sizes)):
            return NotImplemented
        windows = windows_of(sizes, kernel, stride, padding, dilation, ceil_mode=ceil_mode)
        if explicit_padding(windows) is None:
            return NotImplemented
        return _maxima(x, [_elements(window, x) for window in windows])

    return decomposition


for _operator, _dimensions in (
    (aten.max_pool1d_with_indices.default, 1),
    (aten.max_pool2d_with_indices.default, 2),
    (aten.max_pool3d_with_indices.default, 3),
):
    FAMILY.enter(
        _operator,
        _with_indices(_dimensions),
        reason=REASON,
    )


def _fractional(dimensions: int) -> Decomposition:
    def decomposition(
        x: Tensor, kernel: Sequence[int], output: Sequence[int], samples: Tensor
    ) -> Any:
        sizes = x.shape[-dimensions:]
        if not all(is_static(size) for size in (*sizes, *output)):
            return NotImplemented
        places = []
        for axis, (size, window, count) in enumerate(zip(sizes, kernel, output, strict=True)):
            # In two dimensions torch orders the samples from the last dimension to the first.
            sample = samples[..., dimensions - 1 - axis if dimensions == 2 else axis]
            starts = _fractional_starts(sample, size, window, count)
            starts = starts if x.dim() > dimensions + 1 else starts.squeeze(0)
            places.append(starts[..., None] + torch.arange(window, device=x.device))
        return _maxima(x, places)

    return decomposition


def _fractional_starts(sample: Tensor, size: int, window: int, count: int) -> Tensor:
    """Return the start of each window, of shape [batch, channels, windows]."""
    last = size - window
    number = torch.arange(count, device=sample.device)
    if count == 1:
        return torch.full((*sample.shape, 1), last, dtype=torch.int64, device=sample.device)
    step = last / (count - 1)
    base = torch.trunc(sample * step)[..., None]
    starts = (torch.trunc((number + sample[..., None]) * step) - base).to(torch.int64)
    return torch.where(number == count - 1, last, starts)


def _enter_fractional(operator: OpOverload, dimensions: int) -> None:
    FAMILY.enter(operator, _fractional(dimensions), reason="no lowering")


_enter_fractional(aten.fractional_max_pool2d.default, 2)
_enter_fractional(aten.fractional_max_pool3d.default, 3)


def _adaptive(dimensions: int) -> Decomposition:
    """Return max pooling to a given size, for windows that are not all of one size."""

    def decomposition(x: Tensor, output: Sequence[Any]) -> Any:
        sizes = x.shape[-dimensions:]
        counts = each(output, dimensions)
        if x.dim() != dimensions + 2 or all(map(_is_even, sizes, counts)):
            return NotImplemented
        places = [_adaptive_elements(*each_, x) for each_ in zip(sizes, counts, strict=True)]
        best = x
        for axis, place in enumerate(places, 2):
            read = best.index_select(axis, place.flatten())
            shape = (*best.shape[:axis], *place.shape, *best.shape[axis + 1 :])
            best = read.reshape(shape).amax(axis + 1)
        return best, _maxima(x, places)[1]

    return decomposition


def _is_even(size: Any, count: Any) -> bool:
    """Return whether windows divide a dimension into equal parts."""
    return is_static(size) and is_static(count) and count > 0 and size % count == 0


def _adaptive_elements(size: Any, count: Any, like: Tensor) -> Tensor:
    """Return the index of each element of each window, of shape [windows, elements].

    Windows are from floor(i size / count) to ceil((i + 1) size / count); shorter ones repeat their
    last element.
    """
    number = torch.arange(count, device=like.device)
    starts = torch.div(number * size, count, rounding_mode="trunc")  # of no negative number
    lasts = torch.div((number + 1) * size - 1, count, rounding_mode="trunc")
    longest = (size + count - 1) // count
    if not (is_static(size) and is_static(count) and size % count == 0):
        longest = longest + 1
    elements = starts[:, None] + torch.arange(longest, device=like.device)
    return torch.minimum(elements, lasts[:, None])


for _operator, _dimensions in (
    (aten.adaptive_max_pool1d.default, 1),
    (aten.adaptive_max_pool2d.default, 2),
    (aten.adaptive_max_pool3d.default, 3),
):
    FAMILY.enter(
        _operator,
        _adaptive(_dimensions),
        reason="the lowering takes windows for equal, and requires sizes that are static",
    )
