"""Symbolic floats from which sizes are computed, such as `int(n * 0.5)`, as integer quotients.

Scalar floating-point arithmetic is not exact in the compiled program (a conversion to an integer
rounds where Python truncates), so that sizes must not depend on it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from ...compat.symbolic import bound_sympy

aten = torch.ops.aten

_LARGEST_DENOMINATOR = 1 << 12
_CHECKED_SIZES = 1 << 20

_CONVERSIONS = (torch.sym_float, aten.Float.Scalar)
_PRODUCTS = (operator.mul, aten.mul.float)
_QUOTIENTS = (operator.truediv, aten.div.int, aten.div.float)


@dataclass(frozen=True)
class Quotient:
    """The number `dividend * factor / divisor`."""

    dividend: Node
    factor: int
    divisor: Any


@dataclass(frozen=True)
class _Scaled:
    """An integer, multiplied and divided by constants in floating point."""

    base: Node
    steps: tuple[tuple[Callable[[Any, Any], Any], float], ...] = ()

    def then(self, step: Callable[[Any, Any], Any], number: float) -> _Scaled:
        return _Scaled(self.base, (*self.steps, (step, float(number))))

    def evaluate(self, sizes: Any) -> Any:
        for step, number in self.steps:
            sizes = step(sizes, number)
        return sizes

    def fraction(self) -> Fraction:
        scale = Fraction(1)
        for step, number in self.steps:
            scale = step(scale, Fraction(number).limit_denominator(_LARGEST_DENOMINATOR))
        return scale


def quotient_of(number: Node, rounding: Callable[[Any], Any]) -> Quotient | None:
    """Return a quotient of integers that rounds like a float; None if none is known.

    The quotient is compared with the float for each possible size (at most 2 ** 20).

    Args:
        number: The node of the float.
        rounding: `numpy.floor` or `numpy.ceil`.
    """
    if number.target in _QUOTIENTS and not any(isinstance(arg, float) for arg in number.args):
        dividend, divisor = (_integer(arg) for arg in number.args)
        if isinstance(dividend, Node) and divisor is not None:
            return Quotient(dividend, 1, divisor)
    scaled = _scaled(number)
    if scaled is None:
        return None
    low, high = bounds(scaled.base)
    sizes = np.arange(low, min(high, low + _CHECKED_SIZES) + 1, dtype=np.int64)
    fraction = scaled.fraction()
    exact = sizes * fraction.numerator // fraction.denominator
    if rounding is np.ceil:
        exact = -(-sizes * fraction.numerator // fraction.denominator)
    if not np.array_equal(rounding(scaled.evaluate(sizes.astype(np.float64))), exact):
        return None
    return Quotient(scaled.base, fraction.numerator, fraction.denominator)


def _integer(number: Any) -> Any:
    """Return an integer operand, without its conversion to float; None for other operands."""
    if isinstance(number, Node) and number.target in _CONVERSIONS:
        number = number.args[0]
    value = number.meta["val"] if isinstance(number, Node) else number
    return number if isinstance(value, (int, torch.SymInt)) else None


def _scaled(number: Any) -> _Scaled | None:
    if not isinstance(number, Node):
        return None
    if isinstance(number.meta["val"], torch.SymInt):
        return _Scaled(number)
    if number.target in _CONVERSIONS:
        return _scaled(number.args[0])
    if number.target not in _PRODUCTS + _QUOTIENTS:
        return None
    left, right = number.args
    step = operator.mul if number.target in _PRODUCTS else operator.truediv
    if step is operator.mul and not isinstance(left, Node):
        left, right = right, left
    inner = _scaled(left)
    return inner.then(step, right) if inner and isinstance(right, (int, float)) else None


def bounds(number: Node) -> tuple[int, int]:
    """Return the range of a symbolic integer, clamped to +-2 ** 40."""
    symbolic = number.meta["val"].node
    found = bound_sympy(symbolic.expr, symbolic.shape_env.var_to_range)
    limit = 1 << 40
    return int(max(found.lower, -limit)), int(min(found.upper, limit))


def lowest_value(number: Node) -> float:
    """Return a lower bound of a float."""
    symbolic = number.meta["val"].node
    return float(bound_sympy(symbolic.expr, symbolic.shape_env.var_to_range).lower)
