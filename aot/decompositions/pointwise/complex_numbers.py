"""Complex arithmetic as arithmetic on real and imaginary parts.

The compiler has a lowering for the product of two complex tensors, and for no other operator.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ..registry import Decomposition, Family

aten = torch.ops.aten

FAMILY = Family("complex numbers")

_NO_LOWERING = "no lowering for complex numbers"

_LARGEST_PRODUCT = 8


def _is_complex(value: Any) -> bool:
    return value.dtype.is_complex if isinstance(value, Tensor) else isinstance(value, complex)


def _parts(value: Any, real: torch.dtype) -> tuple[Any, Any]:
    """Return real and imaginary part; the imaginary part of a real value is the number 0."""
    if not isinstance(value, Tensor):
        number = complex(value) if isinstance(value, (complex, float, int)) else value
        return (number.real, number.imag) if isinstance(number, complex) else (number, 0.0)
    if value.dtype.is_complex:
        return torch.real(value), torch.imag(value)
    return value.to(real), 0.0


def _join(real: Any, imaginary: Any, like: Tensor) -> Tensor:
    dtype = like.dtype.to_real()
    zero = torch.zeros((), dtype=dtype, device=like.device)
    parts: Any = aten.broadcast_tensors.default([zero + real, zero + imaginary])
    return torch.complex(parts[0], parts[1])


def _both(x: Any, y: Any) -> tuple[tuple[Any, Any], tuple[Any, Any], Tensor] | None:
    """Return the parts of both operands and an empty tensor of the result's type; None if real."""
    if not (_is_complex(x) or _is_complex(y)):
        return None
    like = next(value for value in (x, y) if isinstance(value, Tensor))
    dtype = torch.result_type(x, y)
    model = torch.empty((), dtype=dtype, device=like.device)
    real = dtype.to_real()
    return _parts(x, real), _parts(y, real), model


@FAMILY.decomposes(aten.add.Tensor, aten.add.Scalar, reason=_NO_LOWERING)
def add(x: Any, y: Any, *args: Any, alpha: Any = 1) -> Any:
    """`add`: x + alpha * y."""
    operands = _both(x, y)
    if operands is None:
        return NotImplemented
    (a, b), (c, d), model = operands
    factor = args[0] if args else alpha
    return _join(a + c * factor, b + d * factor, model)


@FAMILY.decomposes(aten.sub.Tensor, aten.sub.Scalar, reason=_NO_LOWERING)
def sub(x: Any, y: Any, *args: Any, alpha: Any = 1) -> Any:
    """`sub`: x - alpha * y."""
    operands = _both(x, y)
    if operands is None:
        return NotImplemented
    (a, b), (c, d), model = operands
    factor = args[0] if args else alpha
    return _join(a - c * factor, b - d * factor, model)


@FAMILY.decomposes(aten.mul.Tensor, aten.mul.Scalar, reason=_NO_LOWERING)
def mul(x: Any, y: Any) -> Any:
    """`mul`; the product of two complex tensors of one type is not decomposed."""
    if isinstance(y, Tensor) and _is_complex(x) and x.dtype == y.dtype:
        return NotImplemented
    operands = _both(x, y)
    if operands is None:
        return NotImplemented
    (a, b), (c, d), model = operands
    if isinstance(d, float) and d == 0:
        return _join(a * c, b * c, model)
    if isinstance(b, float) and b == 0:
        return _join(a * c, a * d, model)
    return _join(a * c - b * d, a * d + b * c, model)


@FAMILY.decomposes(aten.div.Tensor, aten.div.Scalar, reason=_NO_LOWERING)
def div(x: Any, y: Any) -> Any:
    """Return x / y, scaled by the larger part of y so that squares cannot overflow."""
    operands = _both(x, y)
    if operands is None:
        return NotImplemented
    (a, b), (c, d), model = operands
    if isinstance(d, float) and d == 0:
        return _join(a / c, b / c, model)
    zero = torch.zeros((), dtype=model.dtype.to_real(), device=model.device)
    c, d = zero + c, zero + d
    scale = torch.maximum(c.abs(), d.abs())
    c, d = c / scale, d / scale
    norm = (c * c + d * d) * scale
    return _join((a * c + b * d) / norm, (b * c - a * d) / norm, model)


@FAMILY.decomposes(aten.real.default, reason="real tensors crash the compiler")
def real(x: Tensor) -> Any:
    """`real` of a real tensor: the tensor."""
    return NotImplemented if _is_complex(x) else x.clone()


@FAMILY.decomposes(aten.neg.default, reason=_NO_LOWERING)
def neg(x: Tensor) -> Any:
    """Return -x."""
    return _join(-torch.real(x), -torch.imag(x), x) if _is_complex(x) else NotImplemented


@FAMILY.decomposes(
    aten._conj.default,
    aten._conj_physical.default,
    aten.conj_physical.default,
    reason="no lowering",
)
def conj(x: Tensor) -> Any:
    """Return the conjugate, materialized (a compiled program has no lazy conjugates)."""
    return _join(torch.real(x), -torch.imag(x), x) if _is_complex(x) else x.clone()


@FAMILY.decomposes(aten.abs.default, reason=_NO_LOWERING)
def absolute(x: Tensor) -> Any:
    """`abs` of complex numbers: the magnitude."""
    return torch.hypot(torch.real(x), torch.imag(x)) if _is_complex(x) else NotImplemented


@FAMILY.decomposes(aten.angle.default, reason="no lowering")
def angle(x: Tensor) -> Tensor:
    """Return the argument; 0 or pi for real numbers."""
    if _is_complex(x):
        return torch.atan2(torch.imag(x), torch.real(x))
    x = x.to(torch.get_default_dtype()) if not x.dtype.is_floating_point else x
    zero = torch.zeros_like(x)
    return torch.where(x < 0, zero + torch.pi, torch.where(torch.isnan(x), x, zero))


@FAMILY.decomposes(aten.exp.default, reason=_NO_LOWERING)
def exp(x: Tensor) -> Any:
    """Return e ** x."""
    if not _is_complex(x):
        return NotImplemented
    size, turn = torch.exp(torch.real(x)), torch.imag(x)
    return _join(size * torch.cos(turn), size * torch.sin(turn), x)


@FAMILY.decomposes(aten.log.default, reason=_NO_LOWERING)
def log(x: Tensor) -> Any:
    """Return the principal logarithm."""
    return _join(torch.log(torch.abs(x)), torch.angle(x), x) if _is_complex(x) else NotImplemented


@FAMILY.decomposes(aten.sqrt.default, reason=_NO_LOWERING)
def sqrt(x: Tensor) -> Any:
    """Return the principal square root."""
    if not _is_complex(x):
        return NotImplemented
    a, b, size = torch.real(x), torch.imag(x), torch.abs(x)
    half = torch.sqrt(size / 2 + a.abs() / 2)
    other = b.abs() / (2 * torch.where(half == 0, torch.ones_like(half), half))
    real, imaginary = torch.where(a >= 0, half, other), torch.where(a >= 0, other, half)
    return _join(real, torch.copysign(imaginary, b), x)


@FAMILY.converts(reason="real to complex crashes the compiler, and true converts to -1")
def convert(x: Tensor, wanted: torch.dtype) -> Any:
    """Return a real tensor as a complex one, or the real part of a complex one."""
    if wanted == x.dtype or not (wanted.is_complex or x.dtype.is_complex):
        return NotImplemented
    if not wanted.is_complex:
        return torch.real(x).to(wanted)
    part = wanted.to_real()
    if x.dtype.is_complex:
        return torch.complex(torch.real(x).to(part), torch.imag(x).to(part))
    real = x.to(part)
    return torch.complex(real, torch.zeros_like(real))


@FAMILY.decomposes(aten.pow.Tensor_Scalar, reason=_NO_LOWERING)
def power(x: Tensor, exponent: Any) -> Any:
    """`pow` by a number: repeated multiplication for small integers, else exp(n log x)."""
    if not _is_complex(x):
        return NotImplemented
    if exponent == 0:
        one = torch.ones_like(torch.real(x))
        return torch.complex(one, torch.zeros_like(one))
    if not isinstance(exponent, int) or not 0 < exponent <= _LARGEST_PRODUCT:
        return torch.exp(torch.log(x) * exponent)
    result = x
    for _ in range(exponent - 1):
        result = result * x
    return result.clone()


@FAMILY.decomposes(aten.sin.default, reason=_NO_LOWERING)
def sin(x: Tensor) -> Any:
    """Return the sine."""
    if not _is_complex(x):
        return NotImplemented
    a, b = torch.real(x), torch.imag(x)
    return _join(torch.sin(a) * torch.cosh(b), torch.cos(a) * torch.sinh(b), x)


@FAMILY.decomposes(aten.cos.default, reason=_NO_LOWERING)
def cos(x: Tensor) -> Any:
    """Return the cosine."""
    if not _is_complex(x):
        return NotImplemented
    a, b = torch.real(x), torch.imag(x)
    return _join(torch.cos(a) * torch.cosh(b), -torch.sin(a) * torch.sinh(b), x)


@FAMILY.decomposes(aten.polar.default, reason="the lowering does not broadcast")
def polar(size: Tensor, angle: Tensor) -> Tensor:
    """Return complex numbers from magnitude and angle."""
    parts: Any = aten.broadcast_tensors.default([size, angle])
    return torch.complex(parts[0] * torch.cos(parts[1]), parts[0] * torch.sin(parts[1]))


def _partwise(operator: OpOverload) -> Decomposition:
    def decomposition(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not _is_complex(x):
            return NotImplemented
        asked = kwargs.get("dtype")
        if asked is not None and asked.is_complex:
            kwargs["dtype"] = asked.to_real()
        real = operator(torch.real(x), *args, **kwargs)
        return torch.complex(real, operator(torch.imag(x), *args, **kwargs))

    return decomposition


for _operator in (
    aten.cumsum.default,
    aten.mean.default,
    aten.mean.dim,
    aten.sum.default,
    aten.sum.dim_IntList,
):
    FAMILY.enter(_operator, _partwise(_operator), reason=_NO_LOWERING)
