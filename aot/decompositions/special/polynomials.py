"""Orthogonal polynomials, by closed forms or by recurrences in a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..real_types import in_single
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("polynomials")

_REASON = "no lowering"

_HIGHEST_HERMITE = 128
"""The degree above which torch gives NaN for Hermite polynomials of float32."""


def _operands(x: Any, degree: Any) -> tuple[Tensor, Tensor, torch.dtype]:
    """Return x and the truncated degree, broadcast and promoted, and the type of the result."""
    dtype = torch.result_type(x, degree)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    device = (x if isinstance(x, Tensor) else degree).device
    x, degree = (torch.as_tensor(value, device=device).to(dtype) for value in (x, degree))
    x, degree = torch.broadcast_tensors(in_single(x), torch.trunc(in_single(degree)))  # type: ignore[no-untyped-call]
    return x, degree, dtype


def _enter(name: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Return a decorator that enters a function of x and degree as a polynomial of torch."""

    def enter(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def decomposition(x: Any, degree: Any) -> Tensor:
            argument, truncated, dtype = _operands(x, degree)
            value = function(argument, truncated)
            return torch.where(truncated < 0, torch.zeros_like(value), value).to(dtype)

        packet = getattr(aten, f"special_{name}")
        for overload in (packet.default, packet.x_scalar, packet.n_scalar):
            FAMILY.enter(overload, decomposition, reason=_REASON)
        return function

    return enter


def _odd(degree: Tensor) -> Tensor:
    return torch.remainder(degree, 2) == 1


def _angles(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return whether |x| < 1, and the angles acos |x| (inside) and acosh |x| (outside)."""
    size = x.abs()
    inside = size < 1
    angle = torch.acos(torch.where(inside, size, torch.zeros_like(size)))
    beyond = torch.where(inside, torch.ones_like(size), size - 1)
    return inside, angle, torch.log1p(beyond + torch.sqrt(beyond * (2 + beyond)))


def _ratio(x: Tensor, times: Tensor, below: float, function: Any, wide: Any) -> Tensor:
    """Return f(times a) / f(below a) for the angle a of |x|; f is `wide` for |x| > 1."""
    inside, angle, far = _angles(x)
    near = function(times * angle) / function(below * angle)
    return torch.where(inside, near, wide(times * far) / wide(below * far))


def _signed(value: Tensor, negative: Tensor) -> Tensor:
    return torch.where(negative, -value, value)


@_enter("chebyshev_polynomial_t")
def chebyshev_t(x: Tensor, degree: Tensor) -> Tensor:
    """Return cos(n a) for x = cos(a)."""
    value = _ratio(x, degree, 0.0, torch.cos, torch.cosh)
    value = torch.where(x.abs() == 1, torch.ones_like(value), value)
    return _signed(value, (x < 0) & _odd(degree))


@_enter("chebyshev_polynomial_u")
def chebyshev_u(x: Tensor, degree: Tensor) -> Tensor:
    """Return sin((n + 1) a) / sin(a) for x = cos(a)."""
    value = _ratio(x, degree + 1, 1.0, torch.sin, torch.sinh)
    value = torch.where(x.abs() == 1, degree + 1, value)
    return _signed(value, (x < 0) & _odd(degree))


def _half_cosine(x: Tensor, degree: Tensor) -> Tensor:
    value = _ratio(x, degree + 0.5, 0.5, torch.cos, torch.cosh)
    return torch.where(x.abs() == 1, torch.ones_like(value), value)


def _half_sine(x: Tensor, degree: Tensor) -> Tensor:
    value = _ratio(x, degree + 0.5, 0.5, torch.sin, torch.sinh)
    return torch.where(x.abs() == 1, 2 * degree + 1, value)


@_enter("chebyshev_polynomial_v")
def chebyshev_v(x: Tensor, degree: Tensor) -> Tensor:
    """Return cos((n + 1/2) a) / cos(a / 2) for x = cos(a)."""
    value = torch.where(x < 0, _half_sine(x, degree), _half_cosine(x, degree))
    return _signed(value, (x < 0) & _odd(degree))


@_enter("chebyshev_polynomial_w")
def chebyshev_w(x: Tensor, degree: Tensor) -> Tensor:
    """Return sin((n + 1/2) a) / sin(a / 2) for x = cos(a)."""
    value = torch.where(x < 0, _half_cosine(x, degree), _half_sine(x, degree))
    return _signed(value, (x < 0) & _odd(degree))


for _name, _function in (
    ("t", chebyshev_t), ("u", chebyshev_u), ("v", chebyshev_v), ("w", chebyshev_w),
):  # fmt: skip
    _enter(f"shifted_chebyshev_polynomial_{_name}")(
        lambda x, degree, function=_function: function(2 * x - 1, degree)
    )

Step = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""Takes k, x, and the polynomials of degrees k and k - 1; returns that of degree k + 1."""


def _climb(x: Tensor, degree: Tensor, first: Tensor, step: Step) -> Tensor:
    """Return the polynomial of each degree, by recurrence from degrees 0 (1) and 1 (`first`)."""
    zero, one = torch.zeros_like(x), torch.ones_like(x)
    if x.numel() == 0:
        return zero
    highest = torch.where(torch.isnan(degree), zero, degree).amax()

    def more(k: Tensor, below: Tensor, here: Tensor, *around: Tensor) -> Tensor:
        return k < around[2]

    def body(
        k: Tensor, below: Tensor, here: Tensor, *around: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        x, degree, _ = around
        going = degree > k
        above = step(k, x, here, below)
        return k + 1, torch.where(going, here, below), torch.where(going, above, here)

    start = torch.ones((), dtype=x.dtype, device=x.device)
    loop = torch.ops.higher_order.while_loop
    _, _, value = loop(more, body, (start, one, first + zero), (x, degree, highest))
    return torch.where(degree == 0, one, value)


@_enter("hermite_polynomial_h")
def hermite_h(x: Tensor, degree: Tensor) -> Tensor:
    """Return the physicists' Hermite polynomial."""
    bounded = degree.clamp(max=_HIGHEST_HERMITE)
    value = _climb(x, bounded, 2 * x, lambda k, x, here, below: 2 * (x * here - k * below))
    return torch.where(degree > _HIGHEST_HERMITE, torch.full_like(value, torch.nan), value)


@_enter("hermite_polynomial_he")
def hermite_he(x: Tensor, degree: Tensor) -> Tensor:
    """Return the probabilists' Hermite polynomial."""
    bounded = degree.clamp(max=_HIGHEST_HERMITE)
    value = _climb(x, bounded, x, lambda k, x, here, below: x * here - k * below)
    return torch.where(degree > _HIGHEST_HERMITE, torch.full_like(value, torch.nan), value)


@_enter("laguerre_polynomial_l")
def laguerre_l(x: Tensor, degree: Tensor) -> Tensor:
    """Return the Laguerre polynomial."""

    def step(k: Tensor, x: Tensor, here: Tensor, below: Tensor) -> Tensor:
        return ((2 * k + 1 - x) * here - k * below) / (k + 1)

    return _climb(x, degree, 1 - x, step)


@_enter("legendre_polynomial_p")
def legendre_p(x: Tensor, degree: Tensor) -> Tensor:
    """Return the Legendre polynomial."""

    def step(k: Tensor, x: Tensor, here: Tensor, below: Tensor) -> Tensor:
        return ((2 * k + 1) * x * here - k * below) / (k + 1)

    return _climb(x, degree, x, step)
