"""Scalar expressions: arithmetic of float64 and int64 values, at the current insertion point."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler.ir import (
    F64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Type,
    Value,
)

from .emission import create

_AT_LEAST = 5
"""The number of the signed comparison >= of integers."""

_ORDERED = {"==": 1, ">": 2, "<": 4}
"""The numbers of comparisons of floats that are false where one is NaN."""


@dataclass(frozen=True)
class Int64:
    """An integer value, which arithmetic combines with others and with Python integers."""

    value: Value

    def __add__(self, other: Int64 | int) -> Int64:
        return self._with("addi", other)

    def __sub__(self, other: Int64 | int) -> Int64:
        return self._with("subi", other)

    def __and__(self, other: Int64 | int) -> Int64:
        return self._with("andi", other)

    def __or__(self, other: Int64 | int) -> Int64:
        return self._with("ori", other)

    def __lshift__(self, other: Int64 | int) -> Int64:
        return self._with("shli", other)

    def __rshift__(self, other: Int64 | int) -> Int64:
        return self._with("shrsi", other)

    def __ge__(self, other: Int64 | int) -> Value:
        attributes = {"predicate": IntegerAttr.get(_integers(), _AT_LEAST)}
        kind = IntegerType.get_signless(1)
        return create("arith.cmpi", kind, [self.value, _int(other).value], attributes)

    def as_float(self) -> Float64:
        """Return the number."""
        return Float64(create("arith.sitofp", F64Type.get(), [self.value]))

    def as_bits_of_float(self) -> Float64:
        """Return the number that has these bits."""
        return Float64(create("arith.bitcast", F64Type.get(), [self.value]))

    def _with(self, name: str, other: Int64 | int) -> Int64:
        return Int64(create(f"arith.{name}", _integers(), [self.value, _int(other).value]))


@dataclass(frozen=True)
class Float64:
    """A float64 value, which arithmetic combines with others and with Python numbers."""

    value: Value

    def __add__(self, other: Float64 | float) -> Float64:
        return self._with("addf", other)

    def __radd__(self, other: float) -> Float64:
        return real(other) + self

    def __sub__(self, other: Float64 | float) -> Float64:
        return self._with("subf", other)

    def __rsub__(self, other: float) -> Float64:
        return real(other) - self

    def __mul__(self, other: Float64 | float) -> Float64:
        return self._with("mulf", other)

    def __rmul__(self, other: float) -> Float64:
        return self * other

    def __truediv__(self, other: Float64 | float) -> Float64:
        return self._with("divf", other)

    def __rtruediv__(self, other: float) -> Float64:
        return real(other) / self

    def __neg__(self) -> Float64:
        return Float64(create("arith.negf", F64Type.get(), [self.value]))

    def __lt__(self, other: Float64 | float) -> Value:
        return self._compared("<", other)

    def __gt__(self, other: Float64 | float) -> Value:
        return self._compared(">", other)

    def equals(self, other: Float64 | float) -> Value:
        """Return whether two numbers are equal; false where one is NaN."""
        return self._compared("==", other)

    def bits(self) -> Int64:
        """Return the bits as an integer."""
        return Int64(create("arith.bitcast", _integers(), [self.value]))

    def as_integer(self) -> Int64:
        """Return the number without its fraction."""
        return Int64(create("arith.fptosi", _integers(), [self.value]))

    def apply(self, function: str, *others: Float64) -> Float64:
        """Return a function of the `math` dialect of this number and others."""
        operands = [self.value, *(other.value for other in others)]
        return Float64(create(f"math.{function}", F64Type.get(), operands))

    def _with(self, name: str, other: Float64 | float) -> Float64:
        return Float64(create(f"arith.{name}", F64Type.get(), [self.value, _float(other).value]))

    def _compared(self, relation: str, other: Float64 | float) -> Value:
        attributes = {"predicate": IntegerAttr.get(_integers(), _ORDERED[relation])}
        kind = IntegerType.get_signless(1)
        return create("arith.cmpf", kind, [self.value, _float(other).value], attributes)


def real(number: float) -> Float64:
    """Return a constant of float64."""
    kind = F64Type.get()
    return Float64(create("arith.constant", kind, [], {"value": FloatAttr.get(kind, number)}))


def integer(number: int) -> Int64:
    """Return a constant of int64."""
    value = {"value": IntegerAttr.get(_integers(), number)}
    return Int64(create("arith.constant", _integers(), [], value))


def select(condition: Value, first: Float64 | float, second: Float64 | float) -> Float64:
    """Return the first number where a condition holds, else the second."""
    operands = [condition, _float(first).value, _float(second).value]
    return Float64(create("arith.select", F64Type.get(), operands))


def select_integer(condition: Value, first: Int64, second: Int64) -> Int64:
    """Return the first integer where a condition holds, else the second."""
    return Int64(create("arith.select", _integers(), [condition, first.value, second.value]))


def _integers() -> Type:
    return IntegerType.get_signless(64)


def _int(value: Int64 | int) -> Int64:
    return value if isinstance(value, Int64) else integer(value)


def _float(value: Float64 | float) -> Float64:
    return value if isinstance(value, Float64) else real(value)
