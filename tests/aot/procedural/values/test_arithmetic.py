"""Scalar arithmetic: MLIR's folders evaluate what is emitted, and torch says what is right."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from iree.compiler.ir import Value

from pelton.aot.procedural.values import arithmetic
from tests.aot.procedural.traces import folded, names_of, tracing

INTEGERS = ("i8", "i16", "i32", "index", "i64")
FLOATS = ("f32", "f64")
KINDS = ("i1", *INTEGERS, *FLOATS)
VALUES = {"i1": (True, False), **dict.fromkeys(INTEGERS, (0, 1, 7, -7, -128, 127))}
VALUES |= dict.fromkeys(FLOATS, (0.0, 1.0, -0.5, 2.75, -2.75, 96.5))
DTYPES = arithmetic.DTYPE_OF_KIND


def evaluated(emit: Callable[[], list[Value]]) -> list[Any]:
    with tracing() as trace:
        with trace.emitting():
            values = emit()
        return folded(trace, values)


def binary(symbol: str, kind: str, pairs: list[tuple[Any, Any]]) -> list[Any]:
    """Evaluate an operation on pairs of constants of one kind."""
    return evaluated(
        lambda: [
            arithmetic.emit_binary(
                symbol, arithmetic.constant(a, kind), arithmetic.constant(b, kind)
            )
            for a, b in pairs
        ]
    )


def torch_value(value: float, kind: str) -> torch.Tensor:
    return torch.tensor(value, dtype=DTYPES[kind])


# Constants


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_has_its_value_and_its_kind(kind: str) -> None:
    with tracing() as trace:
        with trace.emitting():
            values = [arithmetic.constant(value, kind) for value in VALUES[kind]]
        assert {str(value.type) for value in values} == {kind}
        assert folded(trace, values) == list(VALUES[kind])


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("i8", -(2**7), 2**8 - 1), ("i32", -(2**31), 2**32 - 1), ("i64", -(2**63), 2**64 - 1)],
)
def test_a_constant_may_be_signed_or_unsigned(kind: str, low: int, high: int) -> None:
    assert evaluated(lambda: [arithmetic.constant(n, kind) for n in (low, high)]) == [low, -1]
    for beyond in (low - 1, high + 1):
        with tracing() as trace, trace.emitting():
            with pytest.raises(OverflowError, match=f"{beyond} does not fit into {kind}"):
                arithmetic.constant(beyond, kind)


def test_a_bool_is_no_larger_than_one() -> None:
    with tracing() as trace, trace.emitting(), pytest.raises(OverflowError):
        arithmetic.constant(2, "i1")


def test_an_index_has_64_bits() -> None:
    assert evaluated(lambda: [arithmetic.index_constant(2**40)]) == [2**40]
    assert evaluated(lambda: [arithmetic.constant(-5, "index")]) == [-5]


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), -0.0])
@pytest.mark.parametrize("kind", FLOATS)
def test_special_floats_are_constants(value: float, kind: str) -> None:
    (found,) = evaluated(lambda: [arithmetic.constant(value, kind)])
    assert repr(found) == repr(value)


# Kinds


def test_every_dtype_has_one_kind_and_back() -> None:
    assert all(DTYPES[kind] == dtype for dtype, kind in arithmetic.KIND_OF_DTYPE.items())
    assert set(DTYPES) == set(KINDS)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(KINDS, repeat=2)))
def test_promotion_is_that_of_torch(left: str, right: str) -> None:
    expected = torch.promote_types(DTYPES[left], DTYPES[right])
    assert DTYPES[arithmetic.promote(left, right)] == expected
    assert arithmetic.promote(left, right) == arithmetic.promote(right, left)


def test_promotion_of_what_is_no_kind_is_an_error_of_ours() -> None:
    with pytest.raises(AssertionError, match="unknown kinds f16, f16"):
        arithmetic.promote("f16", "f16")


@pytest.mark.parametrize(
    ("value", "beside", "kind"),
    [
        (True, None, "i1"), (True, "i32", "i32"), (True, "f32", "f32"),
        (3, None, "i64"), (3, "i8", "i8"), (3, "index", "index"), (3, "i1", "i64"),
        (3, "f64", "f64"),
        (1.5, None, "f32"), (1.5, "f64", "f64"), (1.5, "i64", "f32"), (1.5, "i1", "f32"),
    ],
)  # fmt: skip
def test_a_python_number_takes_the_kind_beside_it(
    value: Any, beside: str | None, kind: str
) -> None:
    assert arithmetic.kind_of_literal(value, beside) == kind


def test_an_integer_kind_holds_smaller_ones_only() -> None:
    order = ("i8", "i16", "i32", "index", "i64")
    for place, kind in enumerate(order):
        assert {other for other in KINDS if arithmetic.holds(kind, other)} == (
            set(order[: place + 1]) | ({"i64"} if kind == "index" else set())
        )
    assert not any(arithmetic.holds(kind, other) for kind in ("i1", *FLOATS) for other in KINDS)


def test_numbers_are_bools_integers_and_floats() -> None:
    assert all(map(arithmetic.is_number, (True, 0, -1, 1.5)))
    assert not any(map(arithmetic.is_number, (None, "1", 1j, torch.tensor(1), [1])))


# Conversions


@pytest.mark.parametrize("source", KINDS)
def test_conversions_are_those_of_torch(source: str) -> None:
    with tracing() as trace:
        with trace.emitting():
            values = [arithmetic.constant(value, source) for value in VALUES[source]]
            converted = [[arithmetic.convert(value, kind) for value in values] for kind in KINDS]
        for kind, column in zip(KINDS, converted, strict=True):
            assert {str(value.type) for value in column} == {kind}
        expected = [
            torch_value(value, source).to(DTYPES[kind]).item()
            for kind in KINDS
            for value in VALUES[source]
        ]
        assert folded(trace, list(itertools.chain(*converted))) == expected


def test_a_conversion_to_the_same_kind_emits_nothing() -> None:
    with tracing() as trace, trace.emitting():
        value = arithmetic.constant(1, "i32")
        assert arithmetic.convert(value, "i32") is value
        assert names_of(trace) == ["func.func"]


def test_conversions_that_the_vm_lacks_are_done_in_tensors() -> None:
    with tracing() as trace, trace.emitting():
        arithmetic.convert(arithmetic.constant(1.5, "f64"), "f32")
        assert names_of(trace) == [
            "tensor.from_elements", "arith.truncf", "tensor.extract", "func.func",
        ]  # fmt: skip


# Operations

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "/": operator.truediv, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
OPERANDS = {
    "i32": (7, -7, 2), "i64": (2, -3, 8), "index": (5, 1, 9), "f32": (2.5, -2.5, 7.0),
    "f64": (1.25, -4.0, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("symbol", BINARY)
def test_binary_operations_are_those_of_torch(symbol: str) -> None:
    pairs = [
        ((a, left), (b, right))
        for left, right in itertools.product(OPERANDS, repeat=2)
        for a, b in itertools.product(OPERANDS[left], OPERANDS[right])
    ]
    with tracing() as trace:
        with trace.emitting():
            results = [
                arithmetic.emit_binary(symbol, arithmetic.constant(*a), arithmetic.constant(*b))
                for a, b in pairs
            ]
        expected = [BINARY[symbol](torch_value(*a), torch_value(*b)) for a, b in pairs]
        dtypes = [DTYPES[str(result.type)] for result in results]
        assert dtypes == [value.dtype for value in expected]
        actual = folded(trace, results)
    assert actual == pytest.approx([value.item() for value in expected], rel=1e-6)


@pytest.mark.parametrize("symbol", ["&", "|", "^", "<<", ">>"])
@pytest.mark.parametrize("kind", ["i8", "i32", "i64"])
def test_a_bitwise_operation_is_that_of_python(symbol: str, kind: str) -> None:
    function = {
        "&": operator.and_, "|": operator.or_, "^": operator.xor,
        "<<": operator.lshift, ">>": operator.rshift,
    }[symbol]  # fmt: skip
    pairs = [(6, 3), (-6, 1), (5, 0), (1, 2)]
    results = binary(symbol, kind, pairs)
    assert results == [function(a, b) for a, b in pairs]


@pytest.mark.parametrize("symbol", ["&", "|", "^"])
def test_a_bitwise_operation_of_bools_is_a_bool(symbol: str) -> None:
    function = {"&": operator.and_, "|": operator.or_, "^": operator.xor}[symbol]
    pairs = list(itertools.product((True, False), repeat=2))
    assert binary(symbol, "i1", pairs) == [function(a, b) for a, b in pairs]


@pytest.mark.parametrize(("symbol", "result"), [("+", 2), ("*", 1), ("<<", 2), ("-", 0)])
def test_arithmetic_of_bools_is_that_of_integers(symbol: str, result: int) -> None:
    assert binary(symbol, "i1", [(True, True)]) == [result]


@pytest.mark.parametrize("symbol", ["<", "<=", ">", ">=", "==", "!="])
def test_bools_compare_as_zero_and_one(symbol: str) -> None:
    pairs = list(itertools.product((True, False), repeat=2))
    results = binary(symbol, "i1", pairs)
    assert results == [BINARY[symbol](a, b) for a, b in pairs]


@pytest.mark.parametrize("symbol", ["==", "!=", "<", "<=", ">", ">="])
def test_nan_compares_as_in_python(symbol: str) -> None:
    nan = float("nan")
    pairs = [(nan, nan), (nan, 1.0), (1.0, nan)]
    results = binary(symbol, "f32", pairs)
    assert results == [BINARY[symbol](a, b) for a, b in pairs]


@pytest.mark.parametrize(("base", "exponent"), [(2.0, 3.0), (4.0, 0.5), (-2.0, 2.0), (0.0, 0.0)])
def test_a_power_is_that_of_python(base: float, exponent: float) -> None:
    assert binary("**", "f32", [(base, exponent)]) == [base**exponent]


def test_a_power_of_integers_is_a_float() -> None:
    with tracing() as trace, trace.emitting():
        three = arithmetic.constant(3, "i64")
        assert str(arithmetic.emit_binary("**", three, three).type) == "f32"


@pytest.mark.parametrize("symbol", ["&", "|", "^", "<<", ">>"])
def test_floats_have_no_bitwise_operations(symbol: str) -> None:
    with tracing() as trace, trace.emitting():
        half = arithmetic.constant(0.5, "f32")
        with pytest.raises(TypeError, match="takes integers or bools, got f32"):
            arithmetic.emit_binary(symbol, half, arithmetic.constant(1, "i32"))


@pytest.mark.parametrize("kind", KINDS)
def test_negation_and_absolute_value(kind: str) -> None:
    values = VALUES[kind] if kind in ("i1", *FLOATS) else (0, 1, 7, -7)
    results = evaluated(
        lambda: [
            arithmetic.emit_unary(symbol, arithmetic.constant(value, kind))
            for value in values
            for symbol in ("-", "abs")
        ]
    )
    expected = [number for value in values for number in (-value, abs(value))]
    assert results == expected
    assert [type(r) for r in results] == [type(e) for e in expected]


@pytest.mark.parametrize("kind", ["i1", *INTEGERS])
def test_inversion_flips_all_bits(kind: str) -> None:
    results = evaluated(
        lambda: [
            arithmetic.emit_unary("~", arithmetic.constant(value, kind)) for value in VALUES[kind]
        ]
    )
    assert results == [(~torch_value(value, kind)).item() for value in VALUES[kind]]


def test_floats_have_no_inversion() -> None:
    with tracing() as trace, trace.emitting():
        with pytest.raises(TypeError, match=r"`~` takes integers or bools, got f64"):
            arithmetic.emit_unary("~", arithmetic.constant(0.5, "f64"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_select_is_one_of_two(kind: str) -> None:
    yes, no = (True, False) if kind == "i1" else (1, 2)

    def emit() -> list[Value]:
        values = [arithmetic.constant(value, kind) for value in (yes, no)]
        return [
            arithmetic.select(arithmetic.constant(condition, "i1"), *values)
            for condition in (True, False)
        ]

    assert evaluated(emit) == [yes, no]
