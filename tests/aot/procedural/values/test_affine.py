"""Affine forms: sums and differences of unknowns, and what is known of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from pelton.aot.procedural.values.affine import Affine

X, Y = Affine.of("x"), Affine.of("y")
FORMS = [
    Affine(), Affine.number(3), Affine.number(-1), X, Y, X + X, X - Y, X + Y + Affine.number(5),
]  # fmt: skip


def value_of(form: Affine, unknowns: Mapping[str, int]) -> int:
    return form.offset + sum(count * unknowns[name] for name, count in form.terms.items())


@pytest.mark.parametrize("unknowns", [{"x": 0, "y": 0}, {"x": 7, "y": -2}, {"x": -1, "y": 100}])
def test_sums_and_differences_are_those_of_their_values(unknowns: dict[str, int]) -> None:
    for left, right in itertools.product(FORMS, repeat=2):
        a, b = value_of(left, unknowns), value_of(right, unknowns)
        assert value_of(left + right, unknowns) == a + b
        assert value_of(left - right, unknowns) == a - b


def test_coefficients_of_zero_are_dropped() -> None:
    assert (X - X).terms == {}
    assert (X + Y - Y).terms == {"x": 1}
    assert (X - X - X).terms == {"x": -1}


def test_a_form_without_unknowns_is_a_constant() -> None:
    assert Affine.number(4).constant == 4
    assert Affine().constant == 0
    assert (X + Affine.number(2) - X).constant == 2
    assert X.constant is None
    assert (X - Y).constant is None


def test_only_a_single_unknown_of_coefficient_one_is_an_unknown() -> None:
    assert X.unknown == "x"
    assert (X + Y - Y).unknown == "x"
    for other in (Affine(), Affine.number(1), X + Affine.number(1), X + X, X + Y, X - Y, Y - X - Y):
        assert other.unknown is None


def test_operations_do_not_change_their_operands() -> None:
    left, right = X + Affine.number(1), Y + Affine.number(2)
    left + right, left - right
    assert (dict(left.terms), left.offset) == ({"x": 1}, 1)
    assert (dict(right.terms), right.offset) == ({"y": 1}, 2)


def test_unknowns_are_told_apart_by_equality_and_not_by_identity() -> None:
    first, second = Affine.of(("count", 0, 1)), Affine.of(("count", 0, 1))
    assert (first - second).constant == 0
    assert (first - Affine.of(("count", 0, 2))).constant is None
