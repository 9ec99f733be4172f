"""Special functions (gamma, zeta, error, modified Bessel), by expansions and fitted polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..real_types import floating, in_single, of_reals
from ..registry import Family
from .chebyshev import chebyshev, chebyshev_coefficients
from .float64 import erfc_of_positive, scaled_erfc_of_positive

aten = torch.ops.aten

FAMILY = Family("special")

_NO_LOWERING = "no lowering in the torch dialect"

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The Bernoulli numbers of even order, from the second."""

_TERMS, _LEAST = 48, -40.0  # zeta function: terms summed one by one, smallest argument q
_SHIFT = 8  # arguments are raised by this much, to where the asymptotic series are exact


def _enter(operator: Any) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    def enter(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        FAMILY.enter(operator, of_reals(function), reason=_NO_LOWERING)
        return function

    return enter


def log_gamma_of_positive(x: Tensor) -> Tensor:
    """Return the logarithm of the gamma function of positive numbers."""
    product, shifted = x, x + _SHIFT
    for n in range(1, _SHIFT):
        product = product * (x + n)
    series, power = torch.zeros_like(x), 1 / shifted
    for order, number in enumerate(_BERNOULLI, 1):
        series = series + number / (2 * order * (2 * order - 1)) * power
        power = power / (shifted * shifted)
    stirling = (shifted - 0.5) * torch.log(shifted) - shifted + 0.5 * math.log(2 * math.pi)
    large = (x - 0.5) * torch.log(x) - x + 0.5 * math.log(2 * math.pi)
    return torch.where(x > 1e4, large, stirling + series - torch.log(product))


@_enter(aten.lgamma.default)
def lgamma(x: Tensor) -> Tensor:
    """Return log |gamma(x)|, by reflection for x < 1/2."""
    mirrored = x < 0.5
    positive = log_gamma_of_positive(torch.where(mirrored, 1 - x, x))
    part = x - torch.round(x)
    sine = torch.sin(math.pi * part).abs()
    reflected = math.log(math.pi) - torch.log(sine) - positive
    result = torch.where(mirrored, reflected, positive)
    pole = torch.logical_and(x <= 0, part == 0)
    return torch.where(torch.logical_or(pole, torch.isinf(x)), torch.full_like(x, math.inf), result)


@_enter(aten.digamma.default)
def digamma(x: Tensor) -> Tensor:
    """Return the logarithmic derivative of the gamma function."""
    mirrored = x < 0.5
    y = torch.where(mirrored, 1 - x, x)
    shifted, carried = y + _SHIFT, torch.zeros_like(y)
    for n in range(_SHIFT):
        carried = carried + 1 / (y + n)
    square = 1 / (shifted * shifted)
    series, power = torch.zeros_like(y), square
    for order, number in enumerate(_BERNOULLI, 1):
        series = series + number / (2 * order) * power
        power = power * square
    positive = torch.log(shifted) - 0.5 / shifted - series - carried
    part = x - torch.round(x)  # within 1/2 of 0, where sine and tangent are exact
    angle = math.pi * part
    reflected = positive - math.pi * torch.cos(angle) / torch.sin(angle)
    result = torch.where(mirrored, reflected, positive)
    result = torch.where(torch.logical_and(x < 0, part == 0), torch.full_like(x, math.nan), result)
    return torch.where(x == 0, torch.copysign(torch.full_like(x, math.inf), -x), result)


def _hurwitz(s: Any, q: Tensor, odd: Any) -> Any:
    """Return the sum of (q + n) ** -s over n >= 0 by the Euler-Maclaurin formula.

    Args:
        s: A number, or a tensor, above 1.
        q: A tensor; negative only where s is an integer. The result is NaN below `_LEAST`.
        odd: Whether s is an odd integer; a bool or a tensor.
    """
    total = torch.zeros_like(q)
    for n in range(_TERMS):
        size = (q + n).abs() ** -s  # the compiler gives NaN for powers of negative numbers
        total = total + torch.where((q + n < 0) & odd, -size, size)
    end = q + _TERMS
    total = total + end ** (1 - s) / (s - 1) + 0.5 * end**-s
    factor, power, divisor = s, end ** (-s - 1), 2.0
    for order, number in enumerate(_BERNOULLI, 1):
        total = total + number * factor / divisor * power
        factor = factor * (s + 2 * order - 1) * (s + 2 * order)
        divisor = divisor * (2 * order + 1) * (2 * order + 2)
        power = power / (end * end)
    return torch.where(q < _LEAST, torch.full_like(total, math.nan), total)


@FAMILY.decomposes(aten.special_zeta.default, reason=_NO_LOWERING)
def zeta(s: Tensor, q: Tensor) -> Any:
    """Return the Hurwitz zeta function."""
    dtype = torch.result_type(floating(s), floating(q))
    s, q = in_single(s.to(dtype)), in_single(q.to(dtype))
    pole = torch.logical_and(q <= 0, q == torch.floor(q))
    nan, inf = torch.full_like(s * q, math.nan), torch.full_like(s * q, math.inf)
    sums = _hurwitz(torch.where(s > 1, s, torch.full_like(s, 2.0)), q, torch.remainder(s, 2) == 1)
    fraction = torch.logical_and(q <= 0, s != torch.floor(s))
    result = torch.where(pole, inf, torch.where(fraction, nan, sums))
    result = torch.where(s < 1, nan, torch.where(s == 1, inf, result))
    return result.to(dtype)


def _i0e_tail(t: Tensor) -> Tensor:
    x = 8 / t.clamp(min=1e-12)
    return torch.where(t < 1e-10, 1 / math.sqrt(2 * math.pi), torch.special.i0e(x) * x.sqrt())


def _i1e_tail(t: Tensor) -> Tensor:
    x = 8 / t.clamp(min=1e-12)
    return torch.where(t < 1e-10, 1 / math.sqrt(2 * math.pi), torch.special.i1e(x) * x.sqrt())


def _fitted(size: Tensor, near: Any, far: Any) -> Tensor:
    """Return f(x) for x >= 0, from fits of f on [0, 8] and of sqrt(x) f(x) in 8 / x beyond."""
    low = chebyshev(size, chebyshev_coefficients(near, 0.0, 8.0, 32), 0.0, 8.0)
    reciprocal = 8 / size.clamp(min=8.0)
    high = chebyshev(reciprocal, chebyshev_coefficients(far, 0.0, 1.0, 26), 0.0, 1.0)
    return torch.where(size <= 8, low, high / torch.sqrt(size.clamp(min=8.0)))


@_enter(aten.special_i0e.default)
def i0e(x: Tensor) -> Tensor:
    """Return the scaled modified Bessel function of order 0."""
    return _fitted(x.abs(), torch.special.i0e, _i0e_tail)


@_enter(aten.special_i1e.default)
def i1e(x: Tensor) -> Tensor:
    """Return the scaled modified Bessel function of order 1."""
    size = _fitted(x.abs(), torch.special.i1e, _i1e_tail)
    return torch.where(x < 0, -size, size)


@_enter(aten.i0.default)
@_enter(aten.special_modified_bessel_i0.default)
def i0(x: Tensor) -> Tensor:
    """Return the modified Bessel function of order 0."""
    return torch.exp(x.abs()) * i0e(x)


@_enter(aten.special_i1.default)
@_enter(aten.special_modified_bessel_i1.default)
def i1(x: Tensor) -> Tensor:
    """Return the modified Bessel function of order 1."""
    return torch.exp(x.abs()) * i1e(x)


def _erfinv_ratio(w: Tensor) -> Tensor:
    """Return erfinv(x) / x for w = -log(1 - x^2), in float64."""
    x = torch.sqrt(-torch.expm1(-w))
    result = torch.erfinv(x.clamp(max=0.9))
    beyond = torch.sqrt(w.clamp(min=1.0))
    for _ in range(8):  # Newton's method for log erfc(y) = log(1 - x), where x rounds to 1
        excess = torch.special.log_ndtr(-math.sqrt(2) * beyond) + math.log(2) + w + torch.log1p(x)
        beyond = beyond + excess * torch.special.erfcx(beyond) * math.sqrt(math.pi) / 2
    result = torch.where(x < 0.9, result, beyond)
    return torch.where(w < 1e-12, math.sqrt(math.pi) / 2, result / x)


def _erfinv_ratio_of_root(root: Tensor) -> Tensor:
    return _erfinv_ratio(root * root)


@_enter(aten.erfinv.default)
def erfinv(x: Tensor) -> Tensor:
    """Return the inverse of the error function as x times a function of -log(1 - x^2)."""
    w = -torch.log((1 - x) * (1 + x))
    near = chebyshev(w, chebyshev_coefficients(_erfinv_ratio, 0.0, 6.0, 24), 0.0, 6.0)
    root = torch.sqrt(w.clamp(min=5.0))
    high = 6.1
    far = chebyshev(root, chebyshev_coefficients(_erfinv_ratio_of_root, 2.2, high, 24), 2.2, high)
    result = x * torch.where(w < 5, near, far)
    result = torch.where(x.abs() == 1, torch.copysign(torch.full_like(x, math.inf), x), result)
    return torch.where(x.abs() > 1, torch.full_like(x, math.nan), result)


@_enter(aten.erfc.default)
def erfc(x: Tensor) -> Tensor:
    """Return 1 - erf(x) with full relative accuracy for large x."""
    positive = erfc_of_positive(x.abs())
    return torch.where(x < 0, 2 - positive, positive)


@_enter(aten.special_erfcx.default)
def erfcx(x: Tensor) -> Tensor:
    """Return exp(x^2) erfc(x)."""
    positive = scaled_erfc_of_positive(x.abs())
    return torch.where(x < 0, 2 * torch.exp(x * x) - positive, positive)


@_enter(aten.special_log_ndtr.default)
def log_ndtr(x: Tensor) -> Tensor:
    """Return the logarithm of the normal distribution function."""
    scaled = scaled_erfc_of_positive(x.abs() * math.sqrt(0.5)) / 2
    tail = torch.log(scaled) - x * x / 2
    return torch.where(x < 0, tail, torch.log1p(-erfc_of_positive(x.abs() * math.sqrt(0.5)) / 2))


@_enter(aten.special_ndtri.default)
def ndtri(p: Tensor) -> Tensor:
    """Return the inverse of the normal distribution function."""
    return math.sqrt(2) * torch.erfinv(2 * p - 1)


@_enter(aten.special_spherical_bessel_j0.default)
def spherical_bessel_j0(x: Tensor) -> Tensor:
    """Return sin(x) / x."""
    series = 1 - x * x / 6 + x * x * x * x / 120
    safe = torch.where(x == 0, torch.ones_like(x), x)
    result = torch.where(x.abs() < 0.1, series, torch.sin(x) / safe)
    return torch.where(torch.isinf(x), torch.zeros_like(x), result)
