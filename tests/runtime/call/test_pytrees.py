"""Pytrees: descriptions, flattening, and values of classes that are not imported."""

import dataclasses
import sys
import types
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pelton.runtime.call import pytrees
from pelton.runtime.errors import SignatureError


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Cache:
    keys: Any
    values: Any = None


class Labels(OrderedDict[str, Any]):
    pass


def round_trip(value: Any) -> Any:
    tree, leaves = pytrees.describe(value, lambda item: isinstance(item, str))
    return pytrees.unflatten(tree, leaves)


VALUES = st.recursive(
    st.text(max_size=3) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers() | st.booleans(), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Cache, inner, inner)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_value_is_rebuilt_from_its_tree_and_leaves(value: Any) -> None:
    assert round_trip(value) == value


@given(VALUES)
def test_flatten_finds_the_leaves_that_describe_found(value: Any) -> None:
    tree, leaves = pytrees.describe(value, lambda item: isinstance(item, str))
    found: list[Any] = [None] * len(leaves)
    pytrees.flatten(tree, value, found, "x")
    assert found == leaves


@given(VALUES)
def test_every_leaf_has_a_path_that_leads_to_it(value: Any) -> None:
    tree, leaves = pytrees.describe(value, lambda item: isinstance(item, str))
    paths = pytrees.leaf_paths(tree, "value")
    assert [eval(paths[i], {"value": value}) for i in range(len(leaves))] == leaves


@given(VALUES)
def test_tree_of_a_value_passes_its_check(value: Any) -> None:
    tree, leaves = pytrees.describe(value, lambda item: isinstance(item, str))
    assert pytrees.check(tree, len(leaves)) == tree


def test_mapping_class_is_kept() -> None:
    rebuilt = round_trip(Labels(a="1"))
    assert type(rebuilt) is Labels
    assert rebuilt == {"a": "1"}


def test_leaf_that_is_a_container_stays_whole() -> None:
    assert pytrees.describe([(1, 2)], lambda item: isinstance(item, tuple))[1] == [(1, 2)]


def test_dict_key_that_json_has_not_is_refused() -> None:
    with pytest.raises(SignatureError, match=r"dict key \(1, 2\) of type tuple cannot be stored"):
        pytrees.describe({(1, 2): "a"}, lambda item: False)


# Structures of arguments


def flatten(tree: pytrees.Tree, value: Any, count: int = 2) -> list[Any]:
    leaves: list[Any] = [None] * count
    pytrees.flatten(tree, value, leaves, "x")
    return leaves


POINT = ["namedtuple", f"{__name__}:Point", [["x", 0], ["y", 1]]]


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        (["list", [0, 1]], ("a", "b")),
        (["tuple", [0, 1]], ["a", "b"]),
        (["dict", [["k", 0], ["l", 1]]], OrderedDict(l="b", k="a")),
        (POINT, Point("a", "b")),
        (POINT, ("a", "b")),
        (POINT, {"x": "a", "y": "b"}),
        (POINT, types.SimpleNamespace(x="a", y="b")),
        (["dataclass", "m:C", [["keys", 0], ["values", 1]]], Cache("a", "b")),
        (["mapping", "m:C", [["k", 0], ["l", 1]]], {"k": "a", "l": "b"}),
    ],
)
def test_containers_of_the_same_form_stand_for_each_other(tree: Any, value: Any) -> None:
    assert flatten(tree, value) == ["a", "b"]


def test_entry_that_is_none_may_be_left_out() -> None:
    assert flatten(["dict", [["k", 0], ["mask", None]]], {"k": "a"}, 1) == ["a"]


@pytest.mark.parametrize(
    ("tree", "value", "message"),
    [
        (None, np.ones(2), "argument x expects None, got ndarray of shape (2,)"),
        (["list", [0, 1]], ["a"], "argument x expects [*, *], got list of 1 items"),
        (["list", [0, 1]], "ab", "argument x expects [*, *], got str"),
        (["dict", [["k", 0]]], {"l": 1}, "argument x expects {'k': *}, got dict with keys ['l']"),
        (["dict", [["k", 0]]], {"k": 1, "l": 1}, "got dict with keys ['k', 'l']"),
        (["dict", [["k", ["tuple", [0]]]]], {"k": 3}, "argument x['k'] expects (*,), got int"),
        (POINT, ["a"], "argument x expects Point(x=*, y=*), got list of 1 items"),
    ],
)
def test_other_structure_is_refused_with_both(tree: Any, value: Any, message: str) -> None:
    with pytest.raises(SignatureError) as caught:
        flatten(tree, value)
    assert message in str(caught.value)


# Classes of results


def test_class_that_is_not_imported_is_replaced_by_one_of_the_same_fields() -> None:
    tree = ["namedtuple", "absent.module:Outer.Result", [["x", 0], ["y", 1]]]
    result = pytrees.unflatten(tree, [1, 2])
    assert (type(result).__name__, result, result.y) == ("Result", (1, 2), 2)


def test_dataclass_that_is_not_imported_is_replaced_by_one_of_the_same_fields() -> None:
    result = pytrees.unflatten(["dataclass", "absent:Result", [["x", 0]]], [1])
    assert dataclasses.asdict(result) == {"x": 1}


def test_mapping_that_is_not_imported_becomes_a_dict() -> None:
    assert pytrees.unflatten(["mapping", "absent:Result", [["x", 0]]], [1]) == {"x": 1}


def test_module_of_a_class_is_never_imported() -> None:
    pytrees.unflatten(["namedtuple", "antigravity:Point", [["x", 0]]], [1])
    assert "antigravity" not in sys.modules


def test_class_that_does_not_take_the_fields_is_named() -> None:
    with pytest.raises(SignatureError, match="cannot build a Cache of the results"):
        pytrees.unflatten(["dataclass", f"{Cache.__module__}:Cache", [["other", 0]]], [1])


# Trees from files


@pytest.mark.parametrize(
    "tree",
    [
        2, -1, True, 1.5, "0", [], ["list"], ["list", 0], ["list", [5]], ["set", [0]], [[0]],
        ["list", "name", [0]], ["dict", [0]], ["dict", [["a"]]], ["dict", [[["k"], 0]]],
        ["dict", [["k", 0], ["k", 1]]], ["namedtuple", [["x", 0]]], ["namedtuple", 3, [["x", 0]]],
        ["dataclass", "m:C", [["not a name", 0]]], ["mapping", "m:C", {"x": 0}],
    ],
)  # fmt: skip
def test_damaged_tree_is_refused(tree: Any) -> None:
    with pytest.raises((ValueError, SignatureError)):
        pytrees.check(tree, 2)
