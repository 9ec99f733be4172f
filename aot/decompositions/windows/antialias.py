"""Resizing with an antialiasing filter: products with matrices of the filter's weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ...spec.sizes import is_static
from ..real_types import in_single
from ..registry import Decomposition, Family

aten = torch.ops.aten

FAMILY = Family("antialias")


def _triangle(distance: Tensor) -> Tensor:
    return (1 - distance).clamp(min=0.0)


def _cubic(distance: Tensor) -> Tensor:
    """Return the cubic convolution of parameter -1/2.

    R. Keys, "Cubic convolution interpolation for digital image processing", IEEE Transactions on
    Acoustics, Speech, and Signal Processing 29, 1981.
    """
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return torch.where(distance < 1, near, torch.where(distance < 2, far, 0.0))


def _weights(
    filtered: Callable[[Tensor], Tensor],
    old: Any,
    size: Any,
    align_corners: bool,
    scale: float | None,
    like: Tensor,
) -> Tensor:
    """Return the weights [size, old] of a filter that is stretched by the sampling step."""
    if align_corners:
        step = (old - 1) / (size - 1) if size > 1 else 0.0
    else:
        step = 1 / scale if scale else old / size
    stretch = (torch.ones((), dtype=like.dtype, device=like.device) * step).clamp(min=1.0)
    centre = (torch.arange(size, device=like.device).to(like.dtype) + 0.5) * step
    place = torch.arange(old, device=like.device).to(like.dtype) + 0.5
    weight = filtered((place[None] - centre[:, None]).abs() / stretch)
    return weight / weight.sum(1, keepdim=True)


def _antialiased(filtered: Callable[[Tensor], Tensor]) -> Decomposition:
    def decomposition(
        x: Tensor,
        output_size: Sequence[Any],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Any:
        known = not align_corners or all(is_static(size) for size in output_size)
        if not (known and x.dtype.is_floating_point):
            return NotImplemented  # of bytes, torch rounds the weights to 16 bits
        result = in_single(x)
        (rows, columns), (height, width) = x.shape[-2:], output_size
        across = _weights(filtered, columns, width, align_corners, scales_w, result)
        down = _weights(filtered, rows, height, align_corners, scales_h, result)
        return torch.matmul(down, torch.matmul(result, across.T)).to(x.dtype)

    return decomposition


def _enter(operator: OpOverload, filtered: Callable[[Tensor], Tensor]) -> None:
    FAMILY.enter(operator, _antialiased(filtered), reason="no lowering")


_enter(aten._upsample_bilinear2d_aa.default, _triangle)
_enter(aten._upsample_bicubic2d_aa.default, _cubic)
