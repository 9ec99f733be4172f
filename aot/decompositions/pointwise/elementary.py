"""Elementary functions: powers, logarithms, hyperbolic functions, remainders, gcd and others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..real_types import floating, in_single, of_reals
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("elementary")

_NO_LOWERING = "no lowering"


@FAMILY.decomposes(aten.log10.default, reason="the lowering calls a C function that is not linked")
def log10(x: Tensor) -> Any:
    """Return the decimal logarithm."""
    return torch.log(floating(x)) / math.log(10) if not x.dtype.is_complex else NotImplemented


@FAMILY.decomposes(aten.hypot.default, reason=_NO_LOWERING)
def hypot(x: Tensor, y: Tensor) -> Tensor:
    """`hypot`: sqrt(x^2 + y^2), scaled by the larger operand so that squares cannot overflow."""
    x, y = x.abs(), y.abs()
    large, small = torch.maximum(x, y), torch.minimum(x, y)
    ratio = small / torch.where(large == 0, torch.ones_like(large), large)
    exact = large * torch.sqrt(1 + ratio * ratio)
    infinite = torch.logical_or(torch.isinf(x), torch.isinf(y))  # even where the other is NaN
    return torch.where(infinite, torch.full_like(exact, math.inf), exact)


@FAMILY.decomposes(
    aten.atan2.default, reason="NaN for (0, 0), -1 for true, and -pi for (0, -1) in ONNX"
)
def atan2(y: Tensor, x: Tensor) -> Tensor:
    """`atan2`: atan of the smaller side over the larger, in the quadrant given by the signs."""
    dtype = torch.result_type(x, y)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    x, y = in_single(x.to(dtype)), in_single(y.to(dtype))
    steep = y.abs() > x.abs()
    small, large = torch.where(steep, x, y).abs(), torch.where(steep, y, x).abs()
    slope = torch.where(small == large, (large > 0).to(large.dtype), small / large)
    angle = torch.atan(slope)
    angle = torch.where(steep, math.pi / 2 - angle, angle)
    angle = torch.where(torch.signbit(x), math.pi - angle, angle)
    return torch.copysign(angle, y).to(dtype)


@FAMILY.decomposes(aten.pow.Tensor_Tensor, reason="NaN for negative numbers and for 0 ** 0")
def power(x: Tensor, exponent: Tensor) -> Any:
    """`pow`: exp(y log |x|), with the sign of x if y is an odd integer."""
    dtype = torch.result_type(x, exponent)
    if not dtype.is_floating_point:
        return NotImplemented
    x, y = in_single(x.to(dtype)), in_single(exponent.to(dtype))
    size, integral = x.abs(), torch.floor(y) == y
    odd = torch.logical_and(integral, torch.floor(y / 2) != y / 2)
    endless = torch.logical_and(size == 1, torch.isinf(y))
    one = torch.logical_or(torch.logical_or(x == 1, y == 0), endless)
    result = torch.where(one, 1.0, torch.exp(y * torch.log(size)))
    result = torch.where(torch.logical_and(odd, torch.signbit(x)), -result, result)
    below = torch.logical_and(x < 0, torch.isfinite(x))
    unreal = torch.logical_and(below, torch.logical_not(integral))
    return torch.where(unreal, math.nan, result).to(dtype)


@FAMILY.decomposes(aten.pow.Tensor_Scalar, reason="infinities of wrong sign for a base of 0")
def power_by_negative(x: Tensor, exponent: Any) -> Any:
    """`pow` by a negative number: 1 / x ** n."""
    negative = isinstance(exponent, (int, float)) and exponent < 0
    if not negative or not x.dtype.is_floating_point:
        return NotImplemented
    wide = in_single(x)
    return torch.reciprocal(wide if exponent == -1 else torch.pow(wide, -exponent)).to(x.dtype)


@FAMILY.decomposes(
    aten.pow.Scalar, reason="NaN or wrong for bases that are not positive, and for 1"
)
def power_of_scalar(x: float, exponent: Tensor) -> Any:
    """`pow.Scalar`: `pow.Tensor_Tensor` of a tensor of rank 0."""
    dtype = torch.result_type(x, exponent)
    if not dtype.is_floating_point or (isinstance(x, (int, float)) and x > 0 and x != 1):
        return NotImplemented
    return torch.pow(torch.full((), x, dtype=dtype, device=exponent.device), exponent.to(dtype))


@FAMILY.decomposes(aten.logaddexp.default, reason="the form of torch.onnx overflows from 89 on")
def logaddexp(x: Tensor, y: Tensor) -> Any:
    """`logaddexp`: log(exp(x) + exp(y)), as the larger operand plus a correction."""
    if x.dtype.is_complex or y.dtype.is_complex:
        return NotImplemented
    return _log_add(x, y, lambda distance: torch.log1p(torch.exp(distance)))


@FAMILY.decomposes(aten.logaddexp2.default, reason="the form of torch.onnx overflows from 128 on")
def logaddexp2(x: Tensor, y: Tensor) -> Any:
    """Return log2(2^x + 2^y)."""
    return _log_add(x, y, lambda distance: torch.log1p(torch.exp2(distance)) / math.log(2))


def _log_add(x: Tensor, y: Tensor, correction: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the larger operand and a correction, of their negative distance, added to it."""
    dtype = torch.result_type(x, y)
    x, y = in_single(x), in_single(y)
    large, small = torch.maximum(x, y), torch.minimum(x, y)
    result = large + correction(small - large)
    return torch.where(torch.isinf(large), large, result).to(dtype)


@FAMILY.decomposes(aten.log_sigmoid.default, reason="-inf from -88 on, and in ONNX from -17 on")
@of_reals
def log_sigmoid(x: Tensor) -> Tensor:
    """Return log(sigmoid(x)) without overflow."""
    return x.clamp_max(0) - torch.log1p(torch.exp(-x.abs()))


@FAMILY.decomposes(
    aten.binary_cross_entropy_with_logits.default,
    reason="computed by log_sigmoid, which is infinite from -88 on",
)
def binary_cross_entropy_with_logits(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """`binary_cross_entropy_with_logits`: (1 - target) x - w log(sigmoid(x)).

    w is 1 + (pos_weight - 1) target.

    Args:
        x: The logits.
        target: Probabilities, of the same shape.
        weight: Factors of the loss.
        pos_weight: Factors of the loss where the target is 1.
        reduction: 0: none; 1: the mean; 2: the sum.
    """
    likely: Tensor = log_sigmoid(x)
    if pos_weight is not None:
        likely = likely * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * x - likely
    if weight is not None:
        loss = loss * weight
    if reduction == 0:
        return loss
    return loss.mean() if reduction == 1 else loss.sum()


@FAMILY.decomposes(aten.sinh.default, reason="an absolute error of 1e-6, wrong for small numbers")
@of_reals
def sinh(x: Tensor) -> Tensor:
    """Return the hyperbolic sine, from expm1(x) near 0 and exp(x / 2) beyond, without overflow."""
    size = x.abs()
    small, root = torch.expm1(size), torch.exp(size / 2)
    near, far = (small + small / (small + 1)) / 2, root * (root / 2) - torch.exp(-size) / 2
    return torch.copysign(torch.where(size < 1, near, far), x)


_HUGE = 1e6
"""From here on log(2 x) is asinh(x) and acosh(x) to a relative accuracy of 1e-13."""


@FAMILY.decomposes(aten.asinh.default, reason="infinite from 1e19 on, and 0 below 1e-7")
@of_reals
def asinh(x: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic sine."""
    size = x.abs()
    tame = torch.where(size < _HUGE, size, torch.ones_like(size))
    square = tame * tame
    near = torch.log1p(tame + square / (1 + torch.sqrt(square + 1)))
    result = torch.where(size < _HUGE, near, torch.log(size) + math.log(2))
    return torch.copysign(torch.where(torch.isnan(size), size, result), x)


@FAMILY.decomposes(aten.acosh.default, reason="infinite from 1e19 on and below -1e4")
@of_reals
def acosh(x: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic cosine."""
    beyond = torch.where(x < _HUGE, x, torch.ones_like(x)) - 1
    near = torch.log1p(beyond + torch.sqrt(beyond * (beyond + 2)))
    result = torch.where(x < _HUGE, near, torch.log(x) + math.log(2))
    return torch.where(x >= 1, result, torch.nan)


@FAMILY.decomposes(aten.atanh.default, reason="0 below 1e-7")
@of_reals
def atanh(x: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic tangent."""
    size = x.abs()
    return torch.copysign(torch.log1p(2 * size / (1 - size)) / 2, x)


@FAMILY.decomposes(
    aten.sinc.default, reason="an absolute error of 1e-7 in the sine of small numbers"
)
@of_reals
def sinc(x: Tensor) -> Tensor:
    """Return sin(pi x) / (pi x), near 0 by its series."""
    angle = x * math.pi
    near = angle.abs() < 1e-2
    far = torch.where(near, torch.ones_like(angle), angle)
    return torch.where(near, 1 - angle * angle / 6, torch.sin(far) / far)


def _real_operands(
    x: Any, y: Any, *, narrow: bool = False
) -> tuple[Tensor, Tensor, torch.dtype] | None:
    """Return two operands in float32 or float64 and the type of the result; None if not floating.

    Args:
        x: A tensor, or a number.
        y: A tensor, or a number.
        narrow: Round Python numbers to the type of the result first, as torch does for some
            operators.
    """
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return None
    device = next(each.device for each in (x, y) if isinstance(each, Tensor))
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    x, y = (
        each.to(dtype).to(wide)
        if isinstance(each, Tensor)
        else torch.full((), each, dtype=dtype if narrow else wide, device=device).to(wide)
        for each in (x, y)
    )
    return x, y, dtype


@FAMILY.decomposes(
    aten.fmod.Tensor, aten.fmod.Scalar, reason="the lowering loses all digits for large quotients"
)
def fmod(x: Tensor, y: Any) -> Any:
    """`fmod` of floats: the remainder with the sign of the dividend, exact in float32."""
    operands = _real_operands(x, y, narrow=True)
    if operands is None or operands[2] is torch.float64:
        return NotImplemented
    dividend, divisor, dtype = operands
    rest = torch.remainder(dividend.abs(), divisor.abs())
    return torch.where(dividend < 0, -rest, rest).to(dtype)


@FAMILY.decomposes(aten.remainder.Scalar_Tensor, reason=_NO_LOWERING)
def remainder_of_scalar(x: float, y: Tensor) -> Tensor:
    """`remainder.Scalar_Tensor`: the remainder of a number, with the sign of the divisor."""
    dtype = torch.result_type(x, y)
    return torch.remainder(torch.full((), x, dtype=dtype, device=y.device), y.to(dtype))


def _floor_divided(x: Any, y: Any) -> Any:
    operands = _real_operands(x, y)
    if operands is None:
        return NotImplemented
    dividend, divisor, dtype = operands
    rest = torch.fmod(dividend, divisor)
    quotient = (dividend - rest) / divisor  # an integer, but for rounding
    below = torch.logical_and(rest != 0, torch.logical_xor(rest < 0, divisor < 0))
    quotient = torch.round(quotient - below.to(quotient.dtype))
    return torch.where(divisor == 0, dividend / divisor, quotient).to(dtype)


_ROUNDED = "the lowering floors a rounded quotient: 1 // 0.1 gives 10, not 9"


@FAMILY.decomposes(aten.floor_divide.default, aten.floor_divide.Scalar, reason=_ROUNDED)
def floor_divide(x: Any, y: Any) -> Any:
    """`floor_divide` of floats: the floored quotient, from the remainder as torch computes it."""
    return _floor_divided(x, y)


@FAMILY.decomposes(aten.div.Tensor_mode, aten.div.Scalar_mode, reason=_ROUNDED)
def div(x: Any, y: Any, *, rounding_mode: str | None) -> Any:
    """`div.Tensor_mode` of floats: the floored quotient."""
    return _floor_divided(x, y) if rounding_mode == "floor" else NotImplemented


@FAMILY.decomposes(aten.clamp.default, reason="a NaN bound is ignored")
def clamp_nan_bound(x: Tensor, low: float | None = None, high: float | None = None) -> Any:
    """`clamp` with a NaN bound: NaN."""
    if not any(isinstance(bound, float) and math.isnan(bound) for bound in (low, high)):
        return NotImplemented
    return torch.full_like(x, math.nan, dtype=torch.result_type(x, math.nan))


@FAMILY.decomposes(aten.signbit.default, reason="wrong for bool, unsigned integers and -0.0")
def signbit(x: Tensor) -> Tensor:
    """Return whether the sign is negative, also of -0.0."""
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


@FAMILY.decomposes(aten.fmax.default, reason="the lowering fails on operands of unequal rank")
def fmax(x: Tensor, y: Tensor) -> Tensor:
    """`fmax`: the maximum, ignoring NaN in one of the operands."""
    dtype = torch.result_type(x, y)
    x, y = x.to(dtype), y.to(dtype)
    if not dtype.is_floating_point:
        return torch.maximum(x, y)
    return torch.where(torch.logical_or(torch.isnan(y), x >= y), x, y)


@FAMILY.decomposes(aten.fmin.default, reason="the lowering fails on operands of unequal rank")
def fmin(x: Tensor, y: Tensor) -> Tensor:
    """`fmin`: the minimum, ignoring NaN in one of the operands."""
    dtype = torch.result_type(x, y)
    x, y = x.to(dtype), y.to(dtype)
    if not dtype.is_floating_point:
        return torch.minimum(x, y)
    return torch.where(torch.logical_or(torch.isnan(y), x <= y), x, y)


@FAMILY.decomposes(aten.frexp.Tensor, reason=_NO_LOWERING)
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """`frexp`: the mantissa in [0.5, 1) and the exponent."""
    wide = in_single(x)
    regular = torch.logical_and(torch.isfinite(wide), wide != 0)
    size = torch.where(regular, wide.abs(), torch.ones_like(wide))
    exponent = torch.floor(torch.log2(size)) + 1
    mantissa = _times_power_of_2(size, -exponent)
    exponent = torch.where(mantissa >= 1, exponent + 1, exponent)
    exponent = torch.where(mantissa < 0.5, exponent - 1, exponent)
    mantissa = _times_power_of_2(wide, -exponent)
    zero = torch.zeros_like(exponent)
    exponent = torch.where(regular, exponent, zero).to(torch.int32)
    return torch.where(regular, mantissa, wide).to(x.dtype), exponent


def _times_power_of_2(x: Tensor, exponent: Tensor) -> Tensor:
    """Return x * 2 ** exponent, in two factors: the power itself may be out of range."""
    half = torch.floor(exponent / 2)
    return x * torch.exp2(half) * torch.exp2(exponent - half)


@FAMILY.decomposes(aten.gcd.default, reason=_NO_LOWERING)
def gcd(x: Tensor, y: Tensor) -> Tensor:
    """`gcd`: Euclid's algorithm, unrolled to the largest number of steps for the type."""
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
