"""Arithmetic on scalars of the compiled program: kinds, promotion, conversion, operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from iree.compiler.dialects import arith, math, tensor
from iree.compiler.ir import (
    FloatAttr,
    IndexType,
    IntegerAttr,
    RankedTensorType,
    Type,
    Value,
)

INTEGERS = ("i1", "i8", "i16", "i32", "index", "i64")
"""Integer kinds; an operation on two of them is done in the later one."""

FLOATS = ("f32", "f64")
"""Floating-point kinds; an operation on two of them is done in the later one.

There are no numbers of 16 bits: IREE computes with those in tensors only.
"""

KIND_OF_DTYPE = {
    torch.bool: "i1",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float32: "f32",
    torch.float64: "f64",
}
"""The kind of scalar for an element type."""

DTYPE_OF_KIND = {kind: dtype for dtype, kind in KIND_OF_DTYPE.items()} | {"index": torch.int64}
"""The element type of a tensor made of a scalar."""


def is_float(kind: str) -> bool:
    """Return whether a kind is floating point.

    Example:
        >>> is_float("f32"), is_float("index")
        (True, False)
    """
    return kind in FLOATS


def holds(kind: str, other: str) -> bool:
    """Return whether an integer kind holds all values of another; i64 and index hold each other.

    Example:
        >>> holds("i64", "i32"), holds("index", "i64"), holds("i32", "i64"), holds("f32", "i32")
        (True, True, False, False)
    """
    wide = ("i8", "i16", "i32", "index", "i64")
    if kind not in wide or other not in wide:
        return False
    return wide.index(other) <= wide.index(kind) or (kind, other) == ("index", "i64")


def kind_of_literal(value: bool | int | float, beside: str | None) -> str:
    """Return the kind that a Python number takes: that of the other operand where it fits.

    Example:
        >>> kind_of_literal(1, "i32"), kind_of_literal(1.5, "i32"), kind_of_literal(2, "i1")
        ('i32', 'f32', 'i64')
    """
    if isinstance(value, bool):
        return beside or "i1"
    if isinstance(value, int):
        return "i64" if beside in (None, "i1") else str(beside)
    return beside if beside is not None and is_float(beside) else "f32"


def promote(left: str, right: str) -> str:
    """Return the kind in which an operation on two kinds is done.

    Example:
        >>> promote("i32", "index"), promote("i64", "f32"), promote("f32", "f64")
        ('index', 'f32', 'f64')
    """
    for order in (FLOATS, INTEGERS):
        found = [order.index(kind) for kind in (left, right) if kind in order]
        if found:
            return order[max(found)]
    raise AssertionError(f"unknown kinds {left}, {right}")


def constant(value: bool | int | float, kind: str) -> Value:
    """Emit a constant of a kind.

    Raises:
        OverflowError: An integer does not fit.
    """
    type_ = Type.parse(kind)
    if is_float(kind):
        return arith.constant(type_, FloatAttr.get(type_, float(value)))
    number = int(value)
    bits = 64 if kind == "index" else int(kind[1:])
    if not -(2 ** max(bits - 1, 1)) <= number < 2**bits:
        raise OverflowError(f"{value} does not fit into {kind}")
    if number >= 2 ** (bits - 1) and bits > 1:
        number -= 2**bits
    return arith.constant(type_, IntegerAttr.get(type_, number))


def index_constant(value: int) -> Value:
    """Emit a constant of type index."""
    return arith.constant(IndexType.get(), value)


def convert(value: Value, kind: str) -> Value:
    """Emit the conversion of a scalar to a kind, as torch converts elements.

    Floats are truncated towards zero; to bool, what is not 0 is true.
    """
    source, target = str(value.type), Type.parse(kind)
    if source == kind:
        return value
    if kind == "i1":
        return _compare("ne", value, constant(0, source))
    if is_float(source):
        return _convert_float(value, source, kind)
    if is_float(kind):
        operation = arith.uitofp if source == "i1" else arith.sitofp
        number = convert(value, "i64") if source == "index" else value
        return _in_tensor(operation, number, kind) if kind == "f64" else operation(target, number)
    if source == "i1":
        wide = value if kind == "index" else arith.extui(target, value)
        return arith.index_castui(target, wide) if kind == "index" else wide
    if "index" in (source, kind):
        return arith.index_cast(target, value)
    narrowing = int(source[1:]) > int(kind[1:])
    return arith.trunci(target, value) if narrowing else arith.extsi(target, value)


def _convert_float(value: Value, source: str, kind: str) -> Value:
    if (source, kind) == ("f32", "f64"):
        return arith.extf(Type.parse("f64"), value)
    if is_float(kind):
        return _in_tensor(arith.truncf, value, kind)
    if source == "f64":
        return convert(_in_tensor(arith.fptosi, value, "i64"), kind)
    return convert(arith.fptosi(Type.parse("i64"), _truncate(value)), kind)


def _truncate(value: Value) -> Value:
    """Emit an f32 rounded towards zero: IREE's VM converts to the nearest integer."""
    negative = _compare("lt", value, constant(0, "f32"))
    return arith.select(negative, math.ceil(value), math.floor(value))


def _in_tensor(operation: Callable[[Type, Value], Value], value: Value, kind: str) -> Value:
    """Emit a conversion that IREE's VM lacks, to and from f64, in a tensor of one element."""
    single = tensor.from_elements(RankedTensorType.get([], value.type), [value])
    return tensor.extract(operation(RankedTensorType.get([], Type.parse(kind)), single), [])


_INTEGER_PREDICATES = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_FLOAT_PREDICATES = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}
_UNSIGNED = {"lt": 6, "le": 7, "gt": 8, "ge": 9}


def _compare(name: str, left: Value, right: Value) -> Value:
    kind = str(left.type)
    if is_float(kind):
        return arith.cmpf(_FLOAT_PREDICATES[name], left, right)
    if kind == "i1":
        return arith.cmpi(_UNSIGNED.get(name, _INTEGER_PREDICATES[name]), left, right)
    return arith.cmpi(_INTEGER_PREDICATES[name], left, right)


def _floor_divide(left: Value, right: Value) -> Value:
    if is_float(str(left.type)):
        return math.floor(arith.divf(left, right))
    return arith.floordivsi(left, right)


def _modulo(left: Value, right: Value) -> Value:
    """Emit the remainder that has the sign of the divisor, as in Python and torch."""
    kind = str(left.type)
    zero = constant(0, kind)
    rest = arith.remf(left, right) if is_float(kind) else arith.remsi(left, right)
    differs = arith.xori(_compare("lt", rest, zero), _compare("lt", right, zero))
    wrong = arith.andi(differs, _compare("ne", rest, zero))
    fixed = arith.addf(rest, right) if is_float(kind) else arith.addi(rest, right)
    return arith.select(wrong, fixed, rest)


def _either(
    integers: Callable[[Value, Value], Value], floats: Callable[[Value, Value], Value]
) -> Callable[[Value, Value], Value]:
    def emit(left: Value, right: Value) -> Value:
        return floats(left, right) if is_float(str(left.type)) else integers(left, right)

    return emit


ARITHMETIC: dict[str, Callable[[Value, Value], Value]] = {
    "+": _either(arith.addi, arith.addf),
    "-": _either(arith.subi, arith.subf),
    "*": _either(arith.muli, arith.mulf),
    "//": _floor_divide,
    "%": _modulo,
}
"""Operations on two scalars of one kind, with a result of that kind."""

FLOATING: dict[str, Callable[[Value, Value], Value]] = {"/": arith.divf, "**": math.powf}
"""Operations on two floating-point scalars of one kind."""

BITWISE: dict[str, Callable[[Value, Value], Value]] = {
    "&": arith.andi,
    "|": arith.ori,
    "^": arith.xori,
    "<<": arith.shli,
    ">>": arith.shrsi,
}
"""Operations on two integers of one kind."""

COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
"""Comparisons; the result is a bool."""


def emit_binary(symbol: str, left: Value, right: Value) -> Value:
    """Emit an operation on two scalars, promoting both to one kind.

    Args:
        symbol: Python's operator.
        left: The left operand.
        right: The right operand.

    Raises:
        TypeError: The operator does not take floating-point operands.
    """
    kind = promote(str(left.type), str(right.type))
    if symbol in COMPARISONS:
        return _compare(COMPARISONS[symbol], convert(left, kind), convert(right, kind))
    if symbol in BITWISE:
        if is_float(kind):
            raise TypeError(f"`{symbol}` takes integers or bools, got {kind}")
        if symbol in ("<<", ">>") and kind == "i1":
            kind = "i64"
        return BITWISE[symbol](convert(left, kind), convert(right, kind))
    if symbol in FLOATING and not is_float(kind):
        kind = "f32"
    if kind == "i1":
        kind = "i64"
    operation = FLOATING.get(symbol) or ARITHMETIC[symbol]
    return operation(convert(left, kind), convert(right, kind))


def emit_unary(symbol: str, value: Value) -> Value:
    """Emit `-`, `~` or `abs` of a scalar.

    Raises:
        TypeError: `~` of a floating-point number.
    """
    kind = str(value.type)
    if symbol == "~":
        if is_float(kind):
            raise TypeError(f"`~` takes integers or bools, got {kind}")
        return arith.xori(value, constant(1 if kind == "i1" else -1, kind))
    if kind == "i1":
        value, kind = convert(value, "i64"), "i64"
    if symbol == "abs":
        if is_float(kind):
            return math.absf(value)
        negative = _compare("lt", value, constant(0, kind))
        return arith.select(negative, arith.subi(constant(0, kind), value), value)
    return arith.negf(value) if is_float(kind) else arith.subi(constant(0, kind), value)


def select(condition: Value, yes: Value, no: Value) -> Value:
    """Emit the choice between two scalars of one kind."""
    return arith.select(condition, yes, no)


def number_like(value: Any) -> bool:
    """Return whether a value is a Python number."""
    return isinstance(value, (bool, int, float))
