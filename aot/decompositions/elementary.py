"""Elementwise functions for which the compiler has no code, from those for which it has."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .doubles import erfc_of_positive
from .family import Family

aten = torch.ops.aten

FAMILY = Family("elementary")

_NO_LOWERING = "no lowering"


def floating(x: Tensor) -> Tensor:
    """Return x in the type that torch's functions of real numbers compute in."""
    return x if x.dtype.is_floating_point else x.to(torch.get_default_dtype())


def in_single(x: Tensor) -> Tensor:
    """Return a half-precision tensor as float32, any other as it is."""
    return x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x


@FAMILY.decomposes(aten.log10.default, reason="the lowering calls a C function, not linked")
def log10(x: Tensor) -> Any:
    """Return the decimal logarithm."""
    return torch.log(floating(x)) / math.log(10) if not x.dtype.is_complex else NotImplemented


@FAMILY.decomposes(aten.hypot.default, reason=_NO_LOWERING)
def hypot(x: Tensor, y: Tensor) -> Tensor:
    """Return sqrt(x^2 + y^2), scaled by the larger so that squares cannot overflow."""
    large, small = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    ratio = small / torch.where(large == 0, torch.ones_like(large), large)
    exact = large * torch.sqrt(1 + ratio * ratio)
    return torch.where(torch.isinf(large), large, exact)


@FAMILY.decomposes(aten.signbit.default, reason="wrong for bool and unsigned integers, and for -0")
def signbit(x: Tensor) -> Tensor:
    """Return whether the sign is negative; -0.0 counts."""
    if not x.dtype.is_floating_point:
        return x < 0 if x.dtype.is_signed else torch.zeros_like(x, dtype=torch.bool)
    return torch.logical_or(x < 0, torch.logical_and(x == 0, torch.reciprocal(x) < 0))


@FAMILY.decomposes(aten.copysign.Tensor, aten.copysign.Scalar, reason=_NO_LOWERING)
def copysign(x: Tensor, y: Any) -> Tensor:
    """Return x with the sign of y."""
    size = floating(x).abs()
    sign = y if isinstance(y, Tensor) else torch.full((), y, dtype=size.dtype, device=x.device)
    size = size.to(torch.result_type(size, sign))
    return torch.where(torch.signbit(sign), -size, size)


@FAMILY.decomposes(aten.fmax.default, reason="the lowering fails on ranks that differ")
def fmax(x: Tensor, y: Tensor) -> Tensor:
    """Return the larger; a number where one of them is NaN."""
    dtype = torch.result_type(x, y)
    x, y = x.to(dtype), y.to(dtype)
    if not dtype.is_floating_point:
        return torch.maximum(x, y)
    return torch.where(torch.logical_or(torch.isnan(y), x >= y), x, y)


@FAMILY.decomposes(aten.fmin.default, reason="the lowering fails on ranks that differ")
def fmin(x: Tensor, y: Tensor) -> Tensor:
    """Return the smaller; a number where one of them is NaN."""
    dtype = torch.result_type(x, y)
    x, y = x.to(dtype), y.to(dtype)
    if not dtype.is_floating_point:
        return torch.minimum(x, y)
    return torch.where(torch.logical_or(torch.isnan(y), x <= y), x, y)


@FAMILY.decomposes(aten.erfc.default, reason=_NO_LOWERING)
def erfc(x: Tensor) -> Tensor:
    """Return 1 - erf(x) with full relative accuracy for large x."""
    x = floating(x)
    wide = in_single(x)
    positive = erfc_of_positive(wide.abs())
    return torch.where(wide < 0, 2 - positive, positive).to(x.dtype)


@FAMILY.decomposes(aten.frexp.Tensor, reason=_NO_LOWERING)
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mantissa in [0.5, 1) and exponent."""
    wide = in_single(x)
    regular = torch.logical_and(torch.isfinite(wide), wide != 0)
    size = torch.where(regular, wide.abs(), torch.ones_like(wide))
    exponent = torch.floor(torch.log2(size)) + 1
    mantissa = size * torch.exp2(-exponent)
    exponent = torch.where(mantissa >= 1, exponent + 1, exponent)
    exponent = torch.where(mantissa < 0.5, exponent - 1, exponent)
    mantissa = wide * torch.exp2(-exponent)
    zero = torch.zeros_like(exponent)
    exponent = torch.where(regular, exponent, zero).to(torch.int32)
    return torch.where(regular, mantissa, wide).to(x.dtype), exponent


@FAMILY.decomposes(aten.gcd.default, reason=_NO_LOWERING)
def gcd(x: Tensor, y: Tensor) -> Tensor:
    """Return the greatest common divisor by as many steps of Euclid as the type can need."""
    dtype = torch.result_type(x, y)
    x, y = torch.broadcast_tensors(x.to(dtype).abs(), y.to(dtype).abs())  # type: ignore[no-untyped-call]
    for _ in range(torch.iinfo(dtype).bits * 3 // 2):
        done = y == 0
        rest = torch.remainder(x, torch.where(done, torch.ones_like(y), y))
        x, y = torch.where(done, x, y), torch.where(done, y, rest)
    return x


@FAMILY.decomposes(aten.lcm.default, reason=_NO_LOWERING)
def lcm(x: Tensor, y: Tensor) -> Tensor:
    """Return the least common multiple."""
    divisor = torch.gcd(x, y)
    safe = torch.where(divisor == 0, torch.ones_like(divisor), divisor)
    return (torch.div(x, safe, rounding_mode="trunc") * y).abs()
