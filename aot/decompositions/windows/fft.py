"""Fourier transforms as matrix products.

Lengths are factorised (four-step FFT) until each factor is short enough for one matrix product, so
that a transform of n elements costs n times the sum of the factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("fft")

_LONGEST_PRODUCT = 128
_NO_LOWERING = "no lowering in the torch dialect"

_BY_ROOT, _BY_LENGTH = 1, 2  # the codes of torch for normalisations


def _turns(rows: int, columns: int, length: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return cos and sin of 2 pi j k / length for all j < rows and k < columns."""
    j = torch.arange(rows, device=like.device)[:, None]
    k = torch.arange(columns, device=like.device)[None]
    angles = ((j * k) % length).to(like.dtype) * (2 * math.pi / length)
    return torch.cos(angles), torch.sin(angles)


def _factor(length: int) -> int:
    """Return the largest factor of `length` up to its square root; 1 for primes."""
    return next(n for n in range(math.isqrt(length), 0, -1) if length % n == 0)


def _transform(real: Tensor, imaginary: Tensor, sign: float) -> tuple[Tensor, Tensor]:
    """Return the unnormalised transform over the last dimension; `sign` is that of the exponent."""
    length = real.shape[-1]
    first = _factor(length) if is_static(length) and length > _LONGEST_PRODUCT else 1
    if first == 1:
        cos, sin = _turns(length, length, length, real)
        return _rotate(real, imaginary, cos, sign * sin, torch.matmul)
    second = length // first
    shape = (*real.shape[:-1], first, second)
    real, imaginary = (part.reshape(shape).transpose(-1, -2) for part in (real, imaginary))
    real, imaginary = _transform(real, imaginary, sign)
    cos, sin = _turns(second, first, length, real)
    real, imaginary = _rotate(real, imaginary, cos, sign * sin, torch.mul)
    real, imaginary = _transform(real.transpose(-1, -2), imaginary.transpose(-1, -2), sign)
    return tuple(  # type: ignore[return-value]
        part.transpose(-1, -2).reshape(*shape[:-2], length) for part in (real, imaginary)
    )


def _rotate(
    real: Tensor, imaginary: Tensor, cos: Tensor, sin: Tensor, product: Callable[..., Tensor]
) -> tuple[Tensor, Tensor]:
    return (
        product(real, cos) - product(imaginary, sin),
        product(real, sin) + product(imaginary, cos),
    )


def _scale(normalization: int, length: Any) -> Any:
    if normalization == _BY_ROOT:
        return 1 / math.sqrt(length)
    return 1 / length if normalization == _BY_LENGTH else 1.0


def _over(parts: tuple[Tensor, Tensor], dim: int, sign: float) -> tuple[Tensor, Tensor]:
    moved = [part.movedim(dim, -1) for part in parts]
    real, imaginary = _transform(moved[0], moved[1], sign)
    return real.movedim(-1, dim), imaginary.movedim(-1, dim)


@FAMILY.decomposes(aten._fft_c2c.default, reason=_NO_LOWERING)
def complex_to_complex(x: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    """`_fft_c2c`: the complex transform over some dimensions."""
    parts = (torch.real(x), torch.imag(x))
    for each in dim:
        parts = _over(parts, each, -1.0 if forward else 1.0)
    scale = _scale(normalization, math.prod(x.shape[each] for each in dim))
    return torch.complex(parts[0] * scale, parts[1] * scale)


@FAMILY.decomposes(aten._fft_r2c.default, reason=_NO_LOWERING)
def real_to_complex(x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    """`_fft_r2c`: the transform of real numbers; one-sided in the last of the dimensions."""
    parts = (x, torch.zeros_like(x))
    for each in reversed(dim):
        parts = _over(parts, each, -1.0)
        if onesided and each == dim[-1]:
            half = x.shape[each] // 2 + 1
            parts = (parts[0].narrow(each, 0, half), parts[1].narrow(each, 0, half))
    scale = _scale(normalization, math.prod(x.shape[each] for each in dim))
    return torch.complex(parts[0] * scale, parts[1] * scale)


@FAMILY.decomposes(aten._fft_c2r.default, reason=_NO_LOWERING)
def complex_to_real(x: Tensor, dim: Sequence[int], normalization: int, length: Any) -> Any:
    """`_fft_c2r`: the inverse of the one-sided transform, of `length` in the last dimension."""
    parts = (torch.real(x), torch.imag(x))
    for each in dim[:-1]:
        parts = _over(parts, each, 1.0)
    real, imaginary = (part.movedim(dim[-1], -1) for part in parts)
    half = real.shape[-1]
    cos, sin = _turns(half, length, length, real)
    order = torch.arange(half, device=x.device)
    alone = torch.logical_or(order == 0, order * 2 == length)
    weight = torch.where(alone, 1.0, 2.0).to(real.dtype)
    result = torch.matmul(real * weight, cos) - torch.matmul(imaginary * weight, sin)
    scale = _scale(normalization, length * math.prod(x.shape[each] for each in dim[:-1]))
    return (result * scale).movedim(-1, dim[-1])
