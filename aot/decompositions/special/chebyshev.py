"""Chebyshev series: coefficients by interpolation, evaluation by Clenshaw's recurrence."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from ...compat.fake_tensors import unset_fake_temporarily


@cache
def chebyshev_coefficients(
    function: Callable[[Tensor], Tensor], low: float, high: float, terms: int
) -> tuple[float, ...]:
    """Return Chebyshev coefficients of `function` on an interval, by interpolation in float64.

    Args:
        function: Takes and returns a real float64 tensor. Results are cached by function object.
        low: The lower end of the interval.
        high: The upper end.
        terms: The number of coefficients.

    Example:
        >>> [abs(round(c, 6)) for c in chebyshev_coefficients(torch.square, -1.0, 1.0, 3)]
        [0.5, 0.0, 0.5]
    """
    angles = (np.arange(terms) + 0.5) * np.pi / terms
    points = (high - low) / 2 * np.cos(angles) + (high + low) / 2
    with unset_fake_temporarily(), disable_proxy_modes_tracing():
        values = function(torch.tensor(points, dtype=torch.float64)).numpy()
    orders = np.arange(terms)[:, None]
    coefficients = 2.0 / terms * (np.cos(orders * angles) @ values)
    coefficients[0] /= 2
    return tuple(float(c) + 0.0 for c in coefficients)


def chebyshev(x: Tensor, coefficients: tuple[float, ...], low: float, high: float) -> Tensor:
    """Return the Chebyshev series at x by Clenshaw's recurrence.

    Args:
        x: A real tensor; it is clamped to the interval.
        coefficients: Coefficients as `chebyshev_coefficients` returns them.
        low: The lower end of the interval.
        high: The upper end.
    """
    scaled = ((x.clamp(low, high) - low) * 2 - (high - low)) / (high - low)
    next_, after = torch.zeros_like(scaled), torch.zeros_like(scaled)
    for coefficient in reversed(coefficients[1:]):
        next_, after = coefficient + 2 * scaled * next_ - after, next_
    return coefficients[0] + scaled * next_ - after
