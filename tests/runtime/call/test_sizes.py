"""Sizes: values, linear forms and text of expressions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pelton.runtime.call import sizes
from pelton.runtime.call.sizes import Dim, Size

BATCH = "batch"
TWICE = ["*", 2, BATCH]


def size_strategy() -> st.SearchStrategy[Size]:
    leaves = st.integers(-9, 9) | st.sampled_from(["a", "b"])
    return st.recursive(
        leaves,
        lambda inner: st.tuples(st.sampled_from(list(sizes.OPERATORS)), inner, inner).map(list),
        max_leaves=6,
    )


@pytest.mark.parametrize(
    ("operator", "expected"),
    [("+", 9), ("-", 5), ("*", 14), ("//", 3), ("%", 1), ("max", 7), ("min", 2)],
)
def test_operators_are_those_of_python(operator: str, expected: int) -> None:
    assert sizes.evaluate([operator, BATCH, 2], {BATCH: 7}) == expected


def test_size_of_an_unknown_dimension_has_no_value() -> None:
    assert sizes.evaluate(["+", TWICE, "other"], {BATCH: 1}) is None


@pytest.mark.parametrize("operator", ["//", "%"])
def test_division_by_a_size_of_zero_has_no_value(operator: str) -> None:
    assert sizes.evaluate([operator, 8, BATCH], {BATCH: 0}) is None


def test_dimensions_of_a_size_are_found_at_any_depth() -> None:
    assert sizes.names_in(["+", TWICE, ["max", "other", 1]]) == {BATCH, "other"}
    assert sizes.names_in(3) == set()


@pytest.mark.parametrize(
    ("size", "value", "solution"),
    [
        (BATCH, 5, (BATCH, 5)),
        (TWICE, 6, (BATCH, 3)),
        (["-", TWICE, 1], 5, (BATCH, 3)),
        (["-", 10, BATCH], 4, (BATCH, 6)),
        (["+", BATCH, ["*", BATCH, 3]], 8, (BATCH, 2)),
        (["*", ["+", BATCH, 1], 4], 12, (BATCH, 2)),
    ],
)
def test_linear_size_is_solved_for_its_dimension(
    size: Size, value: int, solution: tuple[str, int]
) -> None:
    assert sizes.solve(size, value) == solution


@pytest.mark.parametrize(
    "size",
    [7, ["*", 0, BATCH], ["-", BATCH, BATCH], ["+", BATCH, "other"], ["*", BATCH, BATCH]],
)
def test_size_without_exactly_one_factor_is_not_solved(size: Size) -> None:
    assert sizes.solve(size, 7) is None


@pytest.mark.parametrize("operator", ["//", "%", "max", "min"])
def test_size_with_many_solutions_is_not_solved(operator: str) -> None:
    assert sizes.solve([operator, BATCH, 5], 3) is None


def test_value_that_no_integer_gives_is_told_apart_from_an_unsolvable_size() -> None:
    assert sizes.solve(TWICE, 7) is None
    assert sizes.linear(TWICE) == (BATCH, 2, 0)
    assert sizes.linear(["//", BATCH, 2]) is None


@given(size_strategy(), st.integers(-20, 20))
def test_solution_gives_the_value_back(size: Size, value: int) -> None:
    solved = sizes.solve(size, value)
    if solved is not None:
        others = dict.fromkeys(sizes.names_in(size), 1)  # which cancel out
        assert sizes.evaluate(size, {**others, **dict([solved])}) == value


@given(size_strategy(), st.integers(-5, 5), st.integers(-5, 5))
def test_text_of_a_size_means_the_same_in_python(size: Size, a: int, b: int) -> None:
    expected = sizes.evaluate(size, {"a": a, "b": b})
    if expected is not None:
        text = sizes.render(size)
        assert eval(text, {"max": max, "min": min}, {"a": a, "b": b}) == expected


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (Dim("n", 1, 8), "n=1..8"),
        (Dim("n", 2), "n=2.."),
        (Dim("n", 3, 3), "n=3..3"),
    ],
)
def test_dimension_shows_its_range(dim: Dim, text: str) -> None:
    assert str(dim) == text


@pytest.mark.parametrize(("value", "inside"), [(0, False), (1, True), (8, True), (9, False)])
def test_both_ends_of_a_range_are_within_it(value: int, inside: bool) -> None:
    assert Dim("n", 1, 8).contains(value) is inside


def test_range_without_a_largest_size_is_open() -> None:
    assert Dim("n", 1).contains(10**12)
