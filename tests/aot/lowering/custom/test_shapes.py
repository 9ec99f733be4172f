"""Shape patterns: their text, the dimensions that `...` stands for, and the sizes of a call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pelton import aot
from pelton.aot.lowering.custom.shapes import REST, Shape, ShapePattern

NAMES = st.sampled_from(["m", "n", "k", "3", "1"])
SHAPES = st.builds(Shape, st.lists(NAMES, max_size=3).map(tuple), st.booleans())


@given(shapes=st.lists(SHAPES, min_size=1, max_size=3))
def test_a_pattern_is_read_as_it_is_printed(shapes: list[Shape]) -> None:
    pattern = ShapePattern(tuple(shapes), tuple(shapes[:1]))
    if str(shapes[0]):  # one tensor of rank 0 prints as no tensor
        assert ShapePattern.parse(str(pattern)) == pattern


@pytest.mark.parametrize(
    "text, message",
    [
        ("m n", "the shapes 'm n' have no '->' before those of the results"),
        ("m -> n", "a result has the size n, which no argument has"),
        ("m -> m n k", "a result has the size n, k, which no"),
        ("m -> ... m", r"a result has the size \.\.\., which no argument has"),
        ("m ... -> m", r"have '\.\.\.'; sizes are names and numbers separated by blanks"),
        ("m+1 -> m", r"have 'm\+1'; sizes are names"),
        ("m-1 -> m", "have 'm-1'; sizes are names"),
        ("... d0 -> ... d0", "d0, d1, … are the sizes that ... stands for"),
    ],
)
def test_texts_that_are_no_pattern_are_refused(text: str, message: str) -> None:
    with pytest.raises(aot.ExportError, match=message):
        ShapePattern.parse(text)


def test_names_like_those_of_rest_are_free_without_it() -> None:
    assert ShapePattern.parse("d0 -> d0").arguments == (Shape(("d0",)),)


def test_results_may_have_fixed_sizes_and_no_arguments_are_needed() -> None:
    pattern = ShapePattern.parse(" -> 2 3")
    assert pattern.arguments == () and pattern.results == (Shape(("2", "3")),)


@pytest.mark.parametrize(
    "text, ranks, expected",
    [("m -> m", [1], 0), ("... m -> m", [1], 0), ("... m -> m", [3], 2), ("... -> ...", [0], 0),
     ("..., ... m -> ...", [2, 3], 2), ("..., m -> ...", [None, 1], 0), ("m, ... -> m", [1, 4], 4)],
)  # fmt: skip
def test_dimensions_of_rest(text: str, ranks: list[int | None], expected: int) -> None:
    assert ShapePattern.parse(text).rank_of_rest(ranks) == expected


@pytest.mark.parametrize(
    "text, ranks, message",
    [
        ("m -> m", [2], r"tensor argument 0 has 2 dimensions, its shape is \[m\]"),
        ("m n -> m", [1], "argument 0 has 1 dimensions"),
        ("... m n -> m", [1], "argument 0 has 1 dimensions"),
        ("... m, ... -> m", [3, 1], r"argument 1 has 1 dimensions, .* with 2 for \.\.\."),
    ],
)
def test_ranks_that_do_not_fit_are_refused(text: str, ranks: list[int], message: str) -> None:
    with pytest.raises(aot.ExportError, match=message):
        ShapePattern.parse(text).rank_of_rest(ranks)


def bind(text: str, *tensors: Any) -> tuple[dict[str, Any], list[Any]]:
    required: list[Any] = []
    names = [f"x{i}" for i in range(len(tensors))]
    sizes = ShapePattern.parse(text).bind(tensors, names, lambda *found: required.append(found))
    return sizes, required


def test_names_are_bound_where_they_stand_first() -> None:
    sizes, required = bind("m k, k n -> m n", "ab", "cd")
    assert sizes == {"m": "a", "k": "b", "n": "d"}
    assert required == [("c", "b", "size 0 of x1 must be k")]


def test_one_object_needs_no_check() -> None:
    size = object()
    sizes, required = bind("m, m -> m", [size], [size])
    assert sizes == {"m": size} and required == []


def test_numbers_and_repeated_names_are_checked() -> None:
    _, required = bind("m 3 m -> m", ["a", "b", "c"])
    assert required == [("b", 3, "size 1 of x0 must be 3"), ("c", "a", "size 2 of x0 must be m")]


def test_dimensions_of_rest_are_the_same_everywhere() -> None:
    sizes, required = bind("... m, ... -> ...", ["a", "b", "c"], ["d", "e"])
    assert sizes == {"d0": "a", "d1": "b", "m": "c"}
    assert [found[:2] for found in required] == [("d", "a"), ("e", "b")]


def test_absent_arguments_are_passed_over() -> None:
    assert bind("m, n -> m", None, ["a"]) == ({"n": "a"}, [])


@pytest.mark.parametrize(
    "text, rest, expected",
    [
        ("m k, k n -> m n", 0, (("m", "n", "k"), 2)),
        ("... m -> ...", 2, (("d0", "d1", "m"), 2)),
        ("m -> ", 0, (("m",), 0)),
        ("m m -> m", 0, (("m",), 1)),
        ("m 3 -> 3", 0, (("3", "m"), 1)),
    ],
)
def test_loops_of_results_come_first(text: str, rest: int, expected: Any) -> None:
    assert ShapePattern.parse(text).loops(rest) == expected
    assert REST not in expected[0]
