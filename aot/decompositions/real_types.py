"""Types of real tensors: promotion to floating point, float32 for half precision, limits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .registry import Decomposition


def floating(x: Tensor) -> Tensor:
    """Return an integer or bool tensor in the default floating-point type, any other as it is."""
    return x if x.dtype.is_floating_point else x.to(torch.get_default_dtype())


def in_single(x: Tensor) -> Tensor:
    """Return a float16 or bfloat16 tensor as float32, any other as it is."""
    return x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x


def ends_of(dtype: torch.dtype) -> tuple[float, float]:
    """Return the least and the greatest value of a real type; infinities for floating point."""
    if dtype.is_floating_point:
        return -math.inf, math.inf
    limits = torch.iinfo(dtype)
    return limits.min, limits.max


def of_reals(function: Callable[..., Tensor]) -> Decomposition:
    """Return a decomposition for real tensors that computes in float32 or wider.

    Its result has the type of its argument, or the default floating-point type for integers.
    """

    @functools.wraps(function)
    def decomposition(x: Tensor, *args: Any) -> Any:
        if x.dtype.is_complex:
            return NotImplemented
        x = floating(x)
        return function(in_single(x), *args).to(x.dtype)

    return decomposition
