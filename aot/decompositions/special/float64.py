"""Functions of float64 that the compiler would lower to calls of a C library."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..registry import Family
from .chebyshev import chebyshev, chebyshev_coefficients

aten = torch.ops.aten

FAMILY = Family("float64")

_NO_LIBRARY = "in float64 the lowering calls a C function that is not linked"


def _is_double(*values: Any) -> bool:
    return any(isinstance(x, Tensor) and x.dtype is torch.float64 for x in values)


def _scaled_erfc(t: Tensor) -> Tensor:
    """Return exp(x^2) erfc(x) as a smooth function of t = 2 / (2 + x) in [0, 1]."""
    return torch.where(t == 0, 0.0, torch.special.erfcx(2 / t.clamp(min=1e-300) - 2))


def scaled_erfc_of_positive(x: Tensor) -> Tensor:
    """Return exp(x^2) erfc(x) for x >= 0."""
    terms = 40 if x.dtype is torch.float64 else 20
    coefficients = chebyshev_coefficients(_scaled_erfc, 0.0, 1.0, terms)
    return chebyshev(2 / (2 + x), coefficients, 0.0, 1.0)


def erfc_of_positive(x: Tensor) -> Tensor:
    """Return erfc(x) for x >= 0 with full relative accuracy."""
    return torch.exp(-x * x) * scaled_erfc_of_positive(x)


def erf_near_zero(x: Tensor) -> Any:
    """Return erf(x) for |x| < 1 by its power series, accurate relative to its size at 0."""
    square, term, total = x * x, x, x
    for n in range(1, 24):
        term = term * square * (-1.0 / n)
        total = total + term / (2 * n + 1)
    return total * (2 / torch.pi**0.5)


@FAMILY.decomposes(aten.erf.default, reason=_NO_LIBRARY)
def erf(x: Tensor) -> Any:
    """Return the error function."""
    if not _is_double(x):
        return NotImplemented
    size = x.abs()
    far = 1 - erfc_of_positive(size)
    near = erf_near_zero(x.clamp(-1, 1))
    return torch.where(size < 1, near, torch.where(x < 0, -far, far))


@FAMILY.decomposes(aten.gelu.default, reason=_NO_LIBRARY)
def gelu(x: Tensor, *, approximate: str = "none") -> Any:
    """`gelu`: x times the normal distribution function, or its tanh approximation."""
    if not _is_double(x):
        return NotImplemented
    if approximate == "tanh":
        inner = (2 / torch.pi) ** 0.5 * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + torch.tanh(inner))
    return 0.5 * x * (1 + torch.erf(x * 0.5**0.5))


@FAMILY.decomposes(aten.fmod.Tensor, aten.fmod.Scalar, reason=_NO_LIBRARY)
def fmod(x: Tensor, y: Any) -> Any:
    """`fmod`: x - trunc(x / y) * y, and x where |y| > |x|, also for infinite y."""
    if not _is_double(x, y):
        return NotImplemented
    quotient = torch.trunc(x / y)
    return torch.where(quotient == 0, x, x - quotient * y)


@FAMILY.decomposes(aten.remainder.Tensor, aten.remainder.Scalar, reason=_NO_LIBRARY)
def remainder(x: Tensor, y: Any) -> Any:
    """`remainder`: the remainder with the sign of the divisor."""
    if not _is_double(x, y):
        return NotImplemented
    rest = torch.fmod(x, y)
    differs = torch.logical_and(rest != 0, (rest < 0) != (y < 0))
    return torch.where(differs, rest + y, rest)


@FAMILY.decomposes(aten.linspace.default, reason="the lowering computes in float32")
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **kwargs: Any) -> Any:
    """`linspace` of float64, computed from the nearer end as torch does."""
    if dtype is not torch.float64 or steps < 2:
        return NotImplemented
    step = (end - start) / (steps - 1)
    index = torch.arange(steps, dtype=torch.float64, device=kwargs.get("device"))
    return torch.where(index < steps / 2, start + step * index, end - step * (steps - 1 - index))
