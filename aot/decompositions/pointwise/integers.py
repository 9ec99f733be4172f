"""Integer quotients, remainders and powers, exact: no intermediate floating-point type."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("integers")


def is_integer(value: Any) -> bool:
    """Return whether a tensor or a Python scalar is an integer (bool counts as one)."""
    if isinstance(value, Tensor):
        return not (value.dtype.is_floating_point or value.dtype.is_complex)
    return isinstance(value, (int, torch.SymInt))


def _operands(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Return both operands as tensors of their promoted type."""
    dtype = torch.result_type(x, y)
    device = (x if isinstance(x, Tensor) else y).device

    def convert(value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value.to(dtype)
        return torch.full((), value, dtype=dtype, device=device)

    return convert(x), convert(y)


def _truncated(dividend: Tensor, divisor: Tensor) -> Tensor:
    return torch.div(dividend, divisor, rounding_mode="trunc")


def _floored(dividend: Tensor, divisor: Tensor) -> Tensor:
    quotient = _truncated(dividend, divisor)
    rest = dividend - quotient * divisor
    inexact = torch.logical_and(rest != 0, torch.logical_xor(rest < 0, divisor < 0))
    return quotient - inexact.to(quotient.dtype)


@FAMILY.decomposes(
    aten.floor_divide.default,
    aten.floor_divide.Scalar,
    reason="the lowering divides floats, which rounds large integers",
)
def floor_divide(x: Tensor, y: Any) -> Any:
    """`floor_divide`: the truncated quotient, less one if it is inexact and the signs differ."""
    return _floored(*_operands(x, y)) if is_integer(x) and is_integer(y) else NotImplemented


@FAMILY.decomposes(
    aten.div.Tensor_mode,
    aten.div.Scalar_mode,
    reason="the floor mode divides floats; the scalar form has no integer lowering",
)
def div(x: Tensor, y: Any, *, rounding_mode: str | None) -> Any:
    """`div.Tensor_mode`: the floored or truncated integer quotient."""
    if rounding_mode is None or not (is_integer(x) and is_integer(y)):
        return NotImplemented
    dividend, divisor = _operands(x, y)
    if rounding_mode == "floor":
        return _floored(dividend, divisor)
    if isinstance(y, Tensor) and x.dtype == y.dtype:
        return NotImplemented
    return _truncated(dividend, divisor)


_BOUNDS = "bounds are taken for integers, or compared as floats"


@FAMILY.decomposes(aten.clamp.default, reason=_BOUNDS)
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Any:
    """`clamp` of integers between numbers of another type: in the promoted type."""
    dtype = x.dtype
    for bound in (min, max):
        dtype = dtype if bound is None else torch.promote_types(dtype, torch.result_type(x, bound))
    return NotImplemented if dtype is x.dtype else torch.clamp(x.to(dtype), min, max)


@FAMILY.decomposes(aten.clamp_min.default, reason=_BOUNDS)
def clamp_min(x: Tensor, min: Any) -> Any:
    """`clamp_min` of integers by a number of another type."""
    return clamp(x, min, None)


@FAMILY.decomposes(aten.clamp_max.default, reason=_BOUNDS)
def clamp_max(x: Tensor, max: Any) -> Any:
    """`clamp_max` of integers by a number of another type."""
    return clamp(x, None, max)


@FAMILY.decomposes(aten.fmod.Tensor, aten.fmod.Scalar, reason="no lowering for integers")
def fmod(x: Tensor, y: Any) -> Any:
    """Return x - trunc(x / y) * y."""
    if not (is_integer(x) and is_integer(y)):
        return NotImplemented
    dividend, divisor = _operands(x, y)
    return dividend - _truncated(dividend, divisor) * divisor


@FAMILY.decomposes(aten.neg.default, reason="the lowering negates in floating point")
def neg(x: Tensor) -> Any:
    """Return 0 - x for integers."""
    return torch.zeros((), dtype=x.dtype, device=x.device) - x if is_integer(x) else NotImplemented


@FAMILY.decomposes(aten.pow.Tensor_Scalar, reason="no lowering for integers")
def pow_scalar(x: Tensor, exponent: Any) -> Any:
    """Return x ** exponent for integers by repeated squaring."""
    if not (is_integer(x) and isinstance(exponent, int)) or exponent < 0:
        return NotImplemented
    result, square = None, x.to(torch.result_type(x, exponent))
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        square = square * square if exponent else square
    return torch.ones_like(square) if result is None else result.clone()


@FAMILY.decomposes(aten.pow.Tensor_Tensor, aten.pow.Scalar, reason="no lowering for integers")
def pow_tensor(x: Any, exponent: Tensor) -> Any:
    """Return x ** exponent for integers, by one squaring for each bit of the exponent's type."""
    if not (is_integer(x) and is_integer(exponent)):
        return NotImplemented
    base, exponents = _operands(x, exponent)
    square = base
    one = torch.ones((), dtype=square.dtype, device=square.device)
    result = one.expand_as(square * exponents)
    for bit in range(torch.iinfo(square.dtype).bits - 1):
        chosen = (exponents >> bit) & one
        result = torch.where(chosen != 0, result * square, result)
        square = square * square
    fraction = torch.logical_and(exponents < 0, base.abs() != one)
    return torch.where(fraction, torch.zeros_like(result), result)
