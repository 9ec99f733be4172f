"""Dynamic sizes: what users write, what torch.export takes, and what a signature states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import sympy
import torch
from torch.export import Dim
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Mod

from pelton import aot
from pelton.aot.capture.dynamic_shapes import (
    UNKNOWN,
    Axis,
    DimTable,
    axes_of_info,
    axes_of_tensor,
    match_tree,
    size_of,
    symbols_of,
)
from pelton.runtime.call import sizes

S, T = sympy.Symbol("s0", integer=True), sympy.Symbol("s1", integer=True)
NAMES = {"s0": "batch", "s1": "length"}


# Named dimensions


def test_one_name_is_one_dim() -> None:
    dims = DimTable()
    first, second = dims.named("n", 1, 8, None), dims.named("n", 1, 8, 4)
    assert first.torch is second.torch and second.opt == 4
    assert (first.torch.min, first.torch.max) == (1, 8)


def test_names_that_are_no_identifiers_get_a_symbol() -> None:
    axis = DimTable().named("batch size", None, None, None)
    assert axis.name == "batch size" and axis.torch.__name__ == "d_batch_size"


@pytest.mark.parametrize(
    "low, high, message",
    [
        (4, 2, r"dimension 'n' has bounds 4..2: min above max"),
        (2, 2, r"dimension 'n' has bounds 2..2: a single size is not dynamic; give the number 2"),
        (1, 16, r"has bounds 1..8 in one place and 1..16 in another; one name has one range"),
        (None, 8, r"has bounds 1..8 in one place and ..8 in another"),
    ],
)
def test_bounds_that_contradict_are_refused(low: int | None, high: int, message: str) -> None:
    dims = DimTable()
    dims.named("n", 1, 8, None)
    with pytest.raises(aot.DynamicShapeError, match=message):
        dims.named("n", low, high, None)


@pytest.mark.parametrize("given", [None, Dim.STATIC, 0, 1, 7])
def test_static_entries_have_no_axis(given: Any) -> None:
    assert DimTable().from_user(given, "x") is None


@pytest.mark.parametrize(
    "given, name, low, high, opt",
    [
        ("n", "n", None, None, None),
        (aot.NamedDimension("n", 1, 2, 4), "n", 1, 4, 2),
        (Dim("n"), "n", None, None, None),
        (Dim("n", min=2, max=5), "n", 2, 5, None),
        (Dim("n", min=0, max=5), "n", None, 5, None),
        (Dim.AUTO, None, None, None, None),
        (Dim.DYNAMIC(min=3, max=4), None, 3, 4, None),
    ],
    ids=str,
)
def test_entries_of_users(given: Any, name: Any, low: Any, high: Any, opt: Any) -> None:
    axis = DimTable().from_user(given, "x")
    assert axis is not None
    assert (axis.name, axis.min, axis.max, axis.opt) == (name, low, high, opt)


def test_only_auto_may_be_fixed_by_the_program() -> None:
    dims = DimTable()
    assert not dims.from_user(Dim.AUTO, "x").strict
    assert dims.from_user(Dim.DYNAMIC, "x").strict
    assert dims.from_user("n", "x").strict


@pytest.mark.parametrize(
    "derive, linear",
    [
        (lambda n: 2 * n, (2, 0)),
        (lambda n: n + 1, (1, 1)),
        (lambda n: n - 1, (1, -1)),
        (lambda n: 3 * n - 2, (3, -2)),
    ],
)
def test_derived_dims_share_their_root(derive: Any, linear: tuple[int, int]) -> None:
    dims = DimTable()
    axis = dims.from_user(derive(Dim("n", min=2, max=6)), "x")
    assert axis is not None
    assert (axis.name, axis.root, axis.linear, axis.min, axis.max) == (None, "n", linear, 2, 6)
    root = dims.named("n", 2, 6, None).torch
    assert axis.torch.root is root
    assert axis.torch.fn(5) == linear[0] * 5 + linear[1]


@pytest.mark.parametrize("given", [1.5, object(), [1]])
def test_entries_that_are_no_size_are_refused(given: Any) -> None:
    with pytest.raises(aot.DynamicShapeError, match=r"^x: cannot read .* as a size; use a Dim"):
        DimTable().from_user(given, "x")


@pytest.mark.parametrize(
    "axis, base, expected",
    [
        (Axis("n", None, None, None, None), 3, 3),
        (Axis("n", 5, None, None, None), 3, 5),
        (Axis("n", None, 2, None, None), 3, 2),
        (Axis("n", 5, 4, None, None), 3, 5),
        (Axis(None, 1, 8, None, None, root="n", linear=(2, -1)), 3, 5),
        (Axis("n", 0, 0, None, None), 0, 0),
    ],
)
def test_examples_stay_within_bounds(axis: Axis, base: int, expected: int) -> None:
    assert axis.example(base) == expected


# Axes of arguments


def test_axes_of_a_spec_are_its_ranges() -> None:
    sizes_ = (
        4, (1, 2, 3), (5, 5, 5), aot.NamedDimension("n", 0, 1, 2), aot.NamedDimension("m", 3, 3, 3),
    )  # fmt: skip
    axes = axes_of_info(aot.InputInfo(sizes_, torch.float32), DimTable())
    assert [*axes] == [1, 3]
    assert (axes[1].name, axes[1].min, axes[1].max, axes[1].opt) == (None, 1, 3, 2)
    assert axes[3].name == "n"


def test_axes_of_a_tensor_count_from_either_end() -> None:
    axes = axes_of_tensor({-1: "n", 0: 4}, 3, DimTable(), "x")
    assert [*axes] == [2]
    assert axes_of_tensor(None, 3, DimTable(), "x") == {}
    assert axes_of_tensor((), 0, DimTable(), "x") == {}


@pytest.mark.parametrize("axis", [3, -4, "n", 1.0, None])
def test_axes_that_are_not_there_are_refused(axis: Any) -> None:
    with pytest.raises(aot.DynamicShapeError, match=r"x: there is no dimension .*; it has 3"):
        axes_of_tensor({axis: "n"}, 3, DimTable(), "x")


# Structures


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Box:
    value: Any


def entries(tree: Any, given: Any) -> dict[int, Any]:
    found: dict[int, Any] = {}
    match_tree(tree, given, found.__setitem__, "x")
    return found


PAIR = ["namedtuple", "m:Pair", [["left", 0], ["right", 1]]]
BOX = ["dataclass", "m:Box", [["value", 0]]]


@pytest.mark.parametrize(
    "tree, given, expected",
    [
        (None, {"a": 1}, {}),
        (0, None, {}),
        (0, "n", {0: "n"}),
        (["list", [0, None, 1]], ["n", None, "m"], {0: "n", 1: "m"}),
        (["tuple", [0, ["list", [1]]]], (None, ["m"]), {1: "m"}),
        (["dict", [["a", 0], ["b", 1]]], {"b": "n"}, {1: "n"}),
        (PAIR, ("n", "m"), {0: "n", 1: "m"}),
        (PAIR, {"right": "m"}, {1: "m"}),
        (PAIR, Pair("n", None), {0: "n"}),
        (BOX, Box("n"), {0: "n"}),
        (BOX, {"value": "n"}, {0: "n"}),
    ],
)
def test_entries_follow_the_structure(tree: Any, given: Any, expected: dict[int, Any]) -> None:
    assert {k: v for k, v in entries(tree, given).items() if v is not None} == expected


@pytest.mark.parametrize(
    "tree, given, message",
    [
        (["list", [0]], ["n", "m"], "x: dynamic_shapes must be a list of 1 entries"),
        (["tuple", [0, 1]], {"a": 1}, "x: dynamic_shapes must be a tuple of 2 entries"),
        (["dict", [["a", 0]]], ["n"], r"x: dynamic_shapes must give an entry by each of \['a'\]"),
        (["dict", [["a", 0]]], {"b": "n"}, r"x: dynamic_shapes names unknown keys \['b'\]"),
        (PAIR, ("n",), r"by each of \['left', 'right'\]"),
        (BOX, Pair(0, 1), r"by each of \['value'\]"),
        (["list", [["dict", [["a", 0]]]]], [[1]], r"x\[0\]: dynamic_shapes must give"),
    ],
)
def test_other_structures_are_refused(tree: Any, given: Any, message: str) -> None:
    with pytest.raises(aot.DynamicShapeError, match=message):
        entries(tree, given)


# Sizes of signatures


@pytest.mark.parametrize(
    "expression, expected",
    [
        (4, 4),
        (sympy.Integer(0), 0),
        (S, "batch"),
        (sympy.Symbol("s9"), UNKNOWN),
        (S + 1, ["+", "batch", 1]),
        (FloorDiv(S, 2), ["//", "batch", 2]),
        (CleanDiv(S, 4), ["//", "batch", 4]),
        (Mod(S, 3), ["%", "batch", 3]),
        (sympy.Max(S, T), ["max", "batch", "length"]),
        (S**3, ["*", ["*", "batch", "batch"], "batch"]),
        (S**T, UNKNOWN),
        (S**-1, UNKNOWN),
        (2 * sympy.Symbol("s9"), UNKNOWN),
        (sympy.sqrt(S), UNKNOWN),
        (sympy.Abs(S), UNKNOWN),
    ],
    ids=str,
)
def test_sizes_have_the_form_of_signatures(expression: Any, expected: Any) -> None:
    found = size_of(expression, NAMES)
    if expected == UNKNOWN or not isinstance(expected, list):
        assert found == expected
    for batch, length in ((1, 2), (7, 3)) if isinstance(expected, list) else ():
        values = {"batch": batch, "length": length}
        assert sizes.evaluate(found, values) == sizes.evaluate(expected, values)


@pytest.mark.parametrize("batch", [0, 1, 2, 9])
def test_sizes_of_several_terms_have_their_value(batch: int) -> None:
    expression = 3 * S * T + FloorDiv(T, 2) - S - 4
    value = sizes.evaluate(size_of(expression, NAMES), {"batch": batch, "length": 11})
    assert value == int(expression.subs({S: batch, T: 11}).doit())


def test_symbols_of_sizes() -> None:
    assert symbols_of(4) == set()
    assert symbols_of(2 * S + T) == {"s0", "s1"}
