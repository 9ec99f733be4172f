"""Incomplete gamma functions and polygamma functions."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..real_types import floating, in_single
from ..registry import Family
from .error_functions import log_gamma_of_positive

aten = torch.ops.aten
prims = torch.ops.prims

FAMILY = Family("gamma")

_REASON = "no lowering"

_PRECISION = 1e-12
_TINY = 1e-300


def _loop(going: Any, step: Any, carried: tuple[Tensor, ...], around: tuple[Tensor, ...]) -> Any:
    return torch.ops.higher_order.while_loop(going, step, carried, around)


def _series(a: Tensor, x: Tensor) -> Any:
    """Return the sum of x^k / ((a + 1) ... (a + k)) over k >= 0, for x below a + 1."""

    def going(k: Tensor, term: Tensor, total: Tensor, a: Tensor, x: Tensor) -> Tensor:
        return (term - total * _PRECISION).amax() > 0.0

    def step(k: Tensor, term: Tensor, total: Tensor, a: Tensor, x: Tensor) -> Any:
        term = term * x / (a + k)
        return k + 1, term, total + term

    one = torch.ones_like(x)
    start = torch.ones((), dtype=x.dtype, device=x.device)
    return _loop(going, step, (start, one, torch.ones_like(x)), (a, x))[2]


def _fraction(a: Tensor, x: Tensor) -> Any:
    """Return the continued fraction of the upper function for x >= a + 1, by Lentz's method."""

    def going(
        k: Tensor, b: Tensor, c: Tensor, d: Tensor, h: Tensor, r: Tensor, a: Tensor
    ) -> Tensor:
        return (r - 1).abs().amax() > _PRECISION

    def step(k: Tensor, b: Tensor, c: Tensor, d: Tensor, h: Tensor, r: Tensor, a: Tensor) -> Any:
        numerator = -k * (k - a)
        b = b + 2
        d = numerator * d + b
        d = 1 / torch.where(d.abs() < _TINY, torch.full_like(d, _TINY), d)
        c = b + numerator / c
        c = torch.where(c.abs() < _TINY, torch.full_like(c, _TINY), c)
        ratio = c * d
        return k + 1, b, c, d, h * ratio, ratio

    b = x + 1 - a
    d = 1 / torch.where(b.abs() < _TINY, torch.full_like(b, _TINY), b)
    start = torch.ones((), dtype=x.dtype, device=x.device)
    c, ratio = torch.full_like(x, 1 / _TINY), torch.full_like(x, 2.0)
    return _loop(going, step, (start, b, c, d, d.clone(), ratio), (a,))[4]


def _parts(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor, torch.dtype]:
    """Return the lower and upper regularised incomplete gamma functions, computed in float64."""
    dtype = torch.result_type(floating(a), floating(x))
    a, x = torch.broadcast_tensors(a.double(), x.double())  # type: ignore[no-untyped-call]
    if 0 in x.shape:
        return torch.zeros_like(x), torch.zeros_like(x), dtype
    inside = torch.logical_and(torch.logical_and(a > 0, x > 0), torch.isfinite(a * x))
    left = torch.logical_and(inside, x < a + 1)
    right = torch.logical_and(inside, torch.logical_not(left))
    one = torch.ones_like(x)
    few, many = torch.where(left, x, one * 0), torch.where(right, x, one * 3)
    shape, shape_of_many = torch.where(left, a, one), torch.where(right, a, one)
    log_size = torch.where(inside, a, one)
    places = torch.where(inside, x, one)
    factor = torch.exp(log_size * torch.log(places) - places - log_gamma_of_positive(log_size))
    lower = factor / log_size * _series(shape, few)
    upper = factor * _fraction(shape_of_many, many)
    lower = torch.where(left, lower, 1 - upper)
    upper = torch.where(left, 1 - lower, upper)
    for bounds, value in _limits(a, x):
        lower = torch.where(bounds, torch.full_like(lower, value), lower)
        upper = torch.where(bounds, torch.full_like(upper, 1 - value), upper)
    return lower, upper, dtype


def _limits(a: Tensor, x: Tensor) -> list[tuple[Tensor, float]]:
    """Return masks of arguments at which the lower function has a limit, with its value."""
    both = torch.logical_or(torch.logical_and(a == 0, x == 0), torch.isinf(a) & torch.isinf(x))
    wrong = torch.logical_or(torch.logical_or(a < 0, x < 0), torch.isnan(a + x))
    return [
        (a == 0, 1.0),
        (torch.logical_and(x == 0, a > 0), 0.0),
        (torch.isinf(a), 0.0),
        (torch.isinf(x), 1.0),
        (torch.logical_or(both, wrong), math.nan),
    ]


@FAMILY.decomposes(prims.igamma.default, aten.igamma.default, reason=_REASON)
def igamma(a: Tensor, x: Tensor) -> Tensor:
    """Return the regularised lower incomplete gamma function."""
    lower, _, dtype = _parts(a, x)
    return lower.to(dtype)


@FAMILY.decomposes(prims.igammac.default, aten.igammac.default, reason=_REASON)
def igammac(a: Tensor, x: Tensor) -> Tensor:
    """Return the regularised upper incomplete gamma function."""
    _, upper, dtype = _parts(a, x)
    return upper.to(dtype)


@FAMILY.decomposes(aten.polygamma.default, aten.special_polygamma.default, reason=_REASON)
def polygamma(n: int, x: Tensor) -> Any:
    """Return the derivative of order n of the digamma function."""
    x = floating(x)
    wide = in_single(x)
    if n == 0:
        return torch.digamma(x)
    if n == 1:
        return _trigamma(wide).to(x.dtype)
    order = torch.full_like(wide, n + 1.0)
    sign = 1.0 if n % 2 else -1.0
    return (sign * math.factorial(n) * torch.special.zeta(order, wide)).to(x.dtype)


def _trigamma(x: Tensor) -> Tensor:
    mirrored = x < 0.5
    positive = torch.special.zeta(torch.full_like(x, 2.0), torch.where(mirrored, 1 - x, x))
    sine = torch.sin(math.pi * x) / math.pi
    return torch.where(mirrored, 1 / (sine * sine) - positive, positive)
