"""Bessel and Airy functions: fitted polynomials near zero, asymptotic expansions beyond."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..real_types import of_reals
from ..registry import Family
from .chebyshev import chebyshev, chebyshev_coefficients

aten = torch.ops.aten
prims = torch.ops.prims
special = torch.special

FAMILY = Family("bessel")

_REASON = "no lowering"

_FAR = 8.0  # from here on the asymptotic expansions are used
_TERMS_NEAR, _TERMS_FAR = 32, 24


def _enter(*operators: Any) -> Callable[[Callable[[Tensor], Tensor]], Callable[[Tensor], Tensor]]:
    def enter(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        for operator in operators:
            FAMILY.enter(operator, of_reals(function), reason=_REASON)
        return function

    return enter


def _fit(x: Tensor, function: Any, low: float, high: float, terms: int = _TERMS_NEAR) -> Tensor:
    return chebyshev(x, chebyshev_coefficients(function, low, high, terms), low, high)


def _in_phase(j: Tensor, y: Tensor, x: Tensor, phase: float) -> Tensor:
    return torch.sqrt(math.pi * x / 2) * (j * torch.cos(x - phase) + y * torch.sin(x - phase))


def _out_of_phase(j: Tensor, y: Tensor, x: Tensor, phase: float) -> Tensor:
    return torch.sqrt(math.pi * x / 2) * (y * torch.cos(x - phase) - j * torch.sin(x - phase))


def _p0(t: Tensor) -> Tensor:
    x = _FAR / t
    return _in_phase(special.bessel_j0(x), special.bessel_y0(x), x, math.pi / 4)


def _q0(t: Tensor) -> Tensor:
    x = _FAR / t
    return _out_of_phase(special.bessel_j0(x), special.bessel_y0(x), x, math.pi / 4)


def _p1(t: Tensor) -> Tensor:
    x = _FAR / t
    return _in_phase(special.bessel_j1(x), special.bessel_y1(x), x, 3 * math.pi / 4)


def _q1(t: Tensor) -> Tensor:
    x = _FAR / t
    return _out_of_phase(special.bessel_j1(x), special.bessel_y1(x), x, 3 * math.pi / 4)


def _waves(x: Tensor, p: Any, q: Any, order: int) -> tuple[Tensor, Tensor]:
    """Return J and Y for x >= `_FAR`, from the amplitudes P and Q of their asymptotic forms."""
    t = _FAR / x
    in_phase, out = (_fit(t, function, 0.0, 1.0, _TERMS_FAR) for function in (p, q))
    size = torch.sqrt(2 / (math.pi * x)) * math.sqrt(0.5)
    cosine, sine = torch.cos(x), torch.sin(x)
    # cos and sin of x - pi/4, or of x - 3 pi/4, times the square root of 2
    c, s = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -sine - cosine)
    return size * (in_phase * c - out * s), size * (in_phase * s + out * c)


def _two_ranges(size: Tensor, near: Tensor, far: Callable[[Tensor], Tensor]) -> Tensor:
    value = torch.where(size <= _FAR, near, far(size.clamp(min=_FAR)))
    return torch.where(torch.isinf(size), torch.zeros_like(value), value)


@_enter(prims.bessel_j0.default, aten.special_bessel_j0.default)
def bessel_j0(x: Tensor) -> Tensor:
    """Return the Bessel function of the first kind of order 0."""
    size = x.abs()
    near = _fit(size, special.bessel_j0, 0.0, _FAR)
    return _two_ranges(size, near, lambda far: _waves(far, _p0, _q0, 0)[0])


@_enter(prims.bessel_j1.default, aten.special_bessel_j1.default)
def bessel_j1(x: Tensor) -> Tensor:
    """Return the Bessel function of the first kind of order 1."""
    size = x.abs()
    near = _fit(size, special.bessel_j1, 0.0, _FAR)
    value = _two_ranges(size, near, lambda far: _waves(far, _p1, _q1, 1)[0])
    return torch.where(x < 0, -value, value)


def _y0_without_logarithm(x: Tensor) -> Any:
    return special.bessel_y0(x) - 2 / math.pi * torch.log(x) * special.bessel_j0(x)


def _y1_without_pole(x: Tensor) -> Any:
    logarithm = torch.log(x) * special.bessel_j1(x) - 1 / x
    return special.bessel_y1(x) - 2 / math.pi * logarithm


def _at_zero(x: Tensor, value: Tensor, pole: float) -> Tensor:
    value = torch.where(x == 0, torch.full_like(value, pole), value)
    return torch.where(x < 0, torch.full_like(value, math.nan), value)


@_enter(aten.special_bessel_y0.default)
def bessel_y0(x: Tensor) -> Tensor:
    """Return the Bessel function of the second kind of order 0."""
    size = x.clamp(min=1e-30)
    logarithm = 2 / math.pi * torch.log(size) * _fit(size, special.bessel_j0, 0.0, _FAR)
    near = _fit(size, _y0_without_logarithm, 0.0, _FAR) + logarithm
    return _at_zero(x, _two_ranges(size, near, lambda far: _waves(far, _p0, _q0, 0)[1]), -math.inf)


@_enter(aten.special_bessel_y1.default)
def bessel_y1(x: Tensor) -> Tensor:
    """Return the Bessel function of the second kind of order 1."""
    size = x.clamp(min=1e-30)
    logarithm = torch.log(size) * _fit(size, special.bessel_j1, 0.0, _FAR) - 1 / size
    near = _fit(size, _y1_without_pole, 0.0, _FAR) + 2 / math.pi * logarithm
    return _at_zero(x, _two_ranges(size, near, lambda far: _waves(far, _p1, _q1, 1)[1]), -math.inf)


_BEND = 2.0  # up to here K is fitted without its logarithmic term


def _k0_without_logarithm(x: Tensor) -> Any:
    return special.modified_bessel_k0(x) + torch.log(x / 2) * special.i0(x)


def _k1_without_pole(x: Tensor) -> Any:
    return x * (special.modified_bessel_k1(x) - torch.log(x / 2) * special.i1(x))


def _k0_tail(t: Tensor) -> Any:
    x = _BEND / t
    return special.scaled_modified_bessel_k0(x) * torch.sqrt(x)


def _k1_tail(t: Tensor) -> Any:
    x = _BEND / t
    return special.scaled_modified_bessel_k1(x) * torch.sqrt(x)


def _scaled_k(x: Tensor, order: int) -> Tensor:
    """Return exp(x) times the modified Bessel function of the second kind."""
    size = x.clamp(min=1e-30)
    low = size.clamp(max=_BEND)
    logarithm = torch.log(low / 2)
    if order == 0:
        series = _fit(low, special.i0, 0.0, _BEND)
        near = _fit(low, _k0_without_logarithm, 0.0, _BEND) - logarithm * series
    else:
        series = _fit(low, special.i1, 0.0, _BEND)
        near = _fit(low, _k1_without_pole, 0.0, _BEND) / low + logarithm * series
    high = size.clamp(min=_BEND)
    tail = _k0_tail if order == 0 else _k1_tail
    far = _fit(_BEND / high, tail, 0.0, 1.0, _TERMS_NEAR) / torch.sqrt(high)
    return _at_zero(x, torch.where(size <= _BEND, near * torch.exp(low), far), math.inf)


@_enter(aten.special_scaled_modified_bessel_k0.default)
def scaled_k0(x: Tensor) -> Tensor:
    """Return the scaled modified Bessel function of the second kind of order 0."""
    return _scaled_k(x, 0)


@_enter(aten.special_scaled_modified_bessel_k1.default)
def scaled_k1(x: Tensor) -> Tensor:
    """Return the scaled modified Bessel function of the second kind of order 1."""
    return _scaled_k(x, 1)


@_enter(aten.special_modified_bessel_k0.default)
def modified_k0(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the second kind of order 0."""
    return torch.exp(-x.clamp(min=0.0)) * _scaled_k(x, 0)


@_enter(aten.special_modified_bessel_k1.default)
def modified_k1(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the second kind of order 1."""
    return torch.exp(-x.clamp(min=0.0)) * _scaled_k(x, 1)


_AIRY_LOW, _AIRY_HIGH, _AIRY_TERMS = -6.0, 3.0, 8


def _airy_series(inverse: Tensor, parity: int, alternate: bool) -> Tensor:
    """Return the terms of one parity of the asymptotic series of Airy functions in 1 / zeta."""
    total, factor = torch.zeros_like(inverse), 1.0
    power = torch.ones_like(inverse)
    for k in range(_AIRY_TERMS):
        if k % 2 == parity:
            sign = -1.0 if alternate and k // 2 % 2 else 1.0
            total = total + sign * factor * power
        factor *= (6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216 * (k + 1) * (2 * k + 1))
        power = power * inverse
    return total


def _airy_tail(inverse: Tensor) -> Any:
    zeta = 1 / inverse
    x = torch.pow(1.5 * zeta, 2 / 3)
    return special.airy_ai(x) * torch.exp(zeta) * torch.pow(x, 0.25)


@_enter(aten.special_airy_ai.default)
def airy_ai(x: Tensor) -> Tensor:
    """Return the Airy function Ai."""
    near = _fit(x, special.airy_ai, _AIRY_LOW, _AIRY_HIGH, 40)
    right = x.clamp(min=_AIRY_HIGH)
    zeta = 2 / 3 * right * torch.sqrt(right)
    limit = 1 / (2 / 3 * _AIRY_HIGH**1.5)
    tail = _fit(1 / zeta, _airy_tail, 1e-3, limit, 20)
    decaying = torch.exp(-zeta) * tail / torch.sqrt(torch.sqrt(right))
    left = (-x).clamp(min=-_AIRY_LOW)
    zeta = 2 / 3 * left * torch.sqrt(left)
    inverse = 1 / zeta
    even, odd = _airy_series(inverse, 0, True), _airy_series(inverse, 1, True)
    angle = zeta + math.pi / 4
    waving = torch.sin(angle) * even - torch.cos(angle) * odd
    waving = waving / (math.sqrt(math.pi) * torch.sqrt(torch.sqrt(left)))
    value = torch.where(x > _AIRY_HIGH, decaying, torch.where(x < _AIRY_LOW, waving, near))
    value = torch.where(x > 103.892, torch.zeros_like(value), value)
    return torch.where(torch.isinf(x), torch.full_like(value, math.nan), value)
