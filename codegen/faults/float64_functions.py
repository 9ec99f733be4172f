"""Elementary functions of float64, for which IREE has no code of its own.

Those of float32 are approximations by polynomials; in float64 (3.13) sines, inverse circular
functions, logarithms of base 2 and 10 and the hyperbolic tangent are calls of a C library that is
not linked («undefined symbol: cos»), on processors and where constants are evaluated for a GPU. The
logarithm of 1 + x and its inverse lose the digits of small numbers, and 2 ** 3 is not 8 (it is the
exponential of a rounded product). Here each is arithmetic, to a few units of the last place, for
numbers of any size.

- Angles are turned into periods by the method of Payne and Hanek: 1 / (2 pi) is cut into parts of
  26 bits, of which those whose products are whole periods are passed over, so that the others are
  exact. M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter
  18, 1983. The sum of products keeps its errors: T. Dekker, "A floating-point technique for
  extending the available precision", Numerische Mathematik 18, 1971.
- expm1 and log1p are the quotients of W. Kahan, from exp and log (N. Higham, "Accuracy and
  Stability of Numerical Algorithms", 2nd edition, section 1.14.1).

Products that sums read are exact, or their rounding does not matter: the compiler may fuse both.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence

from iree.compiler.ir import (
    F64Type,
    FloatAttr,
    InsertionPoint,
    Operation,
    OpResult,
    Value,
)

from ..linalg import operations_in
from ..scalars import Float64, Int64, real, select, select_integer

_BITS = 26
"""Bits of a part of 1 / (2 pi): its products with half of a mantissa are exact."""

_SELECTED = 8
"""Parts that are multiplied, to 2 ** -130 of a period: an angle may be within 2 ** -62 of one."""

_SKIPS = (32, 16, 8, 4, 2, 1)
"""Numbers of parts that are passed over, or not, one after the other."""

_FIRST_SKIP = 52
"""The binary exponent from which a first part gives whole periods."""

_WHOLES = 7
"""Products that may be periods and more, from the largest."""

_SPLITS = 8
"""Points per unit at which the inverse tangent is expanded."""

_LEAST_NORMAL = 2.0**-1022


def expand_float64_functions(module_op: Operation) -> None:
    """Replace functions of float64 in the bodies of structured operations by arithmetic.

    Args:
        module_op: A module at the end of the phase `input`; changed in place.
    """
    for op in operations_in(module_op, "math.powf", *_FUNCTIONS):
        if isinstance(op.result.type, F64Type) and op.parent.name.startswith("linalg."):
            if op.name == "math.powf" and not _is_two(op.operands[0]):
                continue
            function = _FUNCTIONS.get(op.name, _exp2)
            with op.location, InsertionPoint(op):
                result = function(Float64(op.operands[-1]))
            op.result.replace_all_uses_with(result.value)
            op.erase()


def _is_two(value: Value) -> bool:
    """Return whether a value is the constant 2, as the base of what was `exp2`."""
    owner = value.owner if isinstance(value, OpResult) else None
    if owner is None or owner.name != "arith.constant":
        return False
    return bool(FloatAttr(owner.attributes["value"]).value == 2)


def _sin(x: Float64) -> Float64:
    return select(x.apply("absf") < 2.0**-26, x, _sine_and_cosine(x)[0])


def _cos(x: Float64) -> Float64:
    return _sine_and_cosine(x)[1]


def _tan(x: Float64) -> Float64:
    sine, cosine = _sine_and_cosine(x)
    return select(x.apply("absf") < 2.0**-26, x, sine / cosine)


def _sine_and_cosine(x: Float64) -> tuple[Float64, Float64]:
    """Return sine and cosine, of an angle up to pi / 4 from the nearest quarter of a period."""
    first, second, rest = _periods(x)
    first = first - first.apply("roundeven")
    quarters = (4.0 * first).apply("roundeven")
    part = ((first - 0.25 * quarters) + second) + rest
    angle = 2 * math.pi * part
    square = angle * angle
    sine = angle + angle * square * _series(square, [_taylor(n) for n in range(3, 19, 2)])
    cosine = 1.0 + square * _series(square, [_taylor(n) for n in range(2, 18, 2)])
    size = quarters.apply("absf")
    crossed = size.equals(1.0)
    opposite = size.equals(2.0)
    turned, upright = select(crossed, cosine, sine), select(crossed, sine, cosine)
    negative = quarters.equals(-1.0)
    turned = select(opposite, -turned, select(negative, -turned, turned))
    upright = select(opposite, -upright, select(quarters.equals(1.0), -upright, upright))
    finite = x.apply("absf") < math.inf
    return select(finite, turned, math.nan), select(finite, upright, math.nan)


def _taylor(n: int) -> float:
    """Return the coefficient of x ** n of a sine or cosine."""
    return (-1.0) ** (n // 2) / math.factorial(n)


def _series(x: Float64, coefficients: Sequence[float]) -> Float64:
    """Return the polynomial with these coefficients, that of x ** 0 first."""
    total = real(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _periods(x: Float64) -> tuple[Float64, Float64, Float64]:
    """Return how many periods an angle is, but for whole ones, as a sum from large to small."""
    exponent = ((x.bits() >> 52) & 0x7FF) - (1023 + _FIRST_SKIP)
    left = exponent
    parts = [real(part) for part in _parts_of_period()]
    for skip in _SKIPS:
        whole = left >= skip * _BITS
        left = select_integer(whole, left - skip * _BITS, left)
        width = _SELECTED + skip - 1
        shifted = [*parts[skip:], *[real(0.0)] * skip]
        parts = [
            select(whole, later, part)
            for part, later in zip(parts[:width], shifted[:width], strict=True)
        ]
    scaled = (x.bits() - ((exponent - left) << 52)).as_bits_of_float()
    high = (scaled.bits() & -(1 << 27)).as_bits_of_float()
    low = scaled - high
    factors = [part * 2.0 ** (-_BITS * place) for place, part in enumerate(parts)]
    products = [high * factors[0]]
    for later, earlier in zip(factors[1:], factors, strict=False):
        products += [high * later, low * earlier]  # of one size
    products[:_WHOLES] = [_fraction(product) for product in products[:_WHOLES]]
    total, errors = _sum(products)
    error, rests = _sum(errors)
    return total, error, functools.reduce(lambda first, second: first + second, rests)


@functools.cache
def _parts_of_period() -> tuple[float, ...]:
    """Return the parts of 1 / (2 pi), each scaled to be below 1, for angles of all sizes."""
    count = _SELECTED + (1023 - _FIRST_SKIP) // _BITS + 1
    bits = (count + 2) * _BITS
    digits = (1 << count * _BITS + bits) // (2 * _pi(bits))
    places = range((count - 1) * _BITS, -1, -_BITS)
    return tuple((digits >> place) % (1 << _BITS) * 2.0**-_BITS for place in places)


def _pi(bits: int) -> int:
    """Return pi * 2 ** bits, but for the last bits, by Machin's formula."""

    def inverse_tangent(n: int) -> int:
        term = total = (1 << bits) // n
        for order in range(3, 2 * bits, 2):
            term = -term // (n * n)
            total += term // order
        return total

    return 4 * (4 * inverse_tangent(5) - inverse_tangent(239))


def _fraction(x: Float64) -> Float64:
    return x - x.apply("roundeven")


def _sum(terms: Sequence[Float64]) -> tuple[Float64, list[Float64]]:
    """Return the rounded sum of numbers, and the error of each addition."""
    total, errors = terms[0], []
    for term in terms[1:]:
        result = total + term
        taken = result - total
        errors.append((total - (result - taken)) + (term - taken))
        total = result
    return total, errors


def _atan(x: Float64) -> Float64:
    """Return the inverse tangent: that of the nearest eighth, and a series of the distance."""
    size = x.apply("absf")
    steep = size > 1.0
    slope = select(steep, 1.0 / size, size)
    nearest = (slope * _SPLITS).apply("roundeven")
    base = real(0.0)
    for eighth in range(1, _SPLITS + 1):
        base = select(nearest.equals(float(eighth)), math.atan(eighth / _SPLITS), base)
    point = nearest * (1 / _SPLITS)
    distance = (slope - point) / (1.0 + slope * point)
    square = distance * distance
    orders = range(3, 15, 2)
    series = _series(square, [(-1) ** (n // 2) / n for n in orders])
    angle = base + (distance + distance * square * series)
    return select(steep, math.pi / 2 - angle, angle).apply("copysign", x)


def _asin(x: Float64) -> Float64:
    return _atan(x / ((1.0 - x) * (1.0 + x)).apply("sqrt"))


def _acos(x: Float64) -> Float64:
    return 2.0 * _atan(((1.0 - x) / (1.0 + x)).apply("sqrt"))


def _log2(x: Float64) -> Float64:
    """Return the exponent and the logarithm of the mantissa, in [sqrt(1/2), sqrt(2))."""
    subnormal = x < _LEAST_NORMAL
    bits = select(subnormal, x * 2.0**54, x).bits()
    half = real(math.sqrt(0.5)).bits()
    exponent = (bits - half) >> 52
    mantissa = (bits - (exponent << 52)).as_bits_of_float()
    whole = exponent.as_float() - select(subnormal, 54.0, 0.0)
    regular = whole + mantissa.apply("log") * (1 / math.log(2))
    return select(x > 0.0, select(x < math.inf, regular, x), x.apply("log"))


def _log10(x: Float64) -> Float64:
    return x.apply("log") / math.log(10)


def _log1p(x: Float64) -> Float64:
    total = 1.0 + x
    moved = total - 1.0
    result = select(moved.equals(0.0), x, total.apply("log") * (x / moved))
    return select(x < math.inf, result, x)


def _exp2(x: Float64) -> Float64:
    """Return the power of the fraction, times that of the whole number in two factors."""
    bound = 1100.0  # beyond, the result is 0 or infinite
    whole = select(x > -bound, select(x < bound, x, bound), -bound).apply("roundeven")
    number = whole.as_integer()
    half = number >> 1
    power = ((x - whole) * math.log(2)).apply("exp")
    result = power * _power_of_2(half) * _power_of_2(number - half)
    return select(x.apply("absf") < bound, result, x.apply("exp"))


def _power_of_2(exponent: Int64) -> Float64:
    return ((exponent + 1023) << 52).as_bits_of_float()


def _expm1(x: Float64) -> Float64:
    power = x.apply("exp")
    moved = power - 1.0
    near = moved * (x / power.apply("log"))
    result = select(x.apply("absf") < 0.5, near, moved)
    return select(power.equals(1.0), x, result)


def _tanh(x: Float64) -> Float64:
    shrunk = _expm1(-2.0 * x.apply("absf"))
    return (-shrunk / (2.0 + shrunk)).apply("copysign", x)


_FUNCTIONS: Mapping[str, Callable[[Float64], Float64]] = {
    "math.acos": _acos,
    "math.asin": _asin,
    "math.atan": _atan,
    "math.cos": _cos,
    "math.exp2": _exp2,
    "math.expm1": _expm1,
    "math.log10": _log10,
    "math.log1p": _log1p,
    "math.log2": _log2,
    "math.sin": _sin,
    "math.tan": _tan,
    "math.tanh": _tanh,
}
