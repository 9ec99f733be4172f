"""Signatures: JSON round trips, and refusals of damaged JSON."""

import dataclasses
import inspect
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import (
    FORMAT,
    ConstantSpec,
    Leaf,
    Parameter,
    ScalarSpec,
    Signature,
    TensorSpec,
)
from pelton.runtime.call.sizes import Dim, Profile
from pelton.runtime.errors import ArtifactError

POSITIONAL = "POSITIONAL_OR_KEYWORD"

FULL = Signature(
    name="main",
    parameters=(
        Parameter("x", "POSITIONAL_ONLY", 0),
        Parameter("cache", POSITIONAL, ["dict", [["keys", ["list", [1, 2]]], ["mask", None]]]),
        Parameter("n", POSITIONAL, 3),
        Parameter("rest", "VAR_POSITIONAL", ["tuple", [4]]),
        Parameter("mode", "KEYWORD_ONLY", 5),
    ),
    inputs=(
        TensorSpec(DTYPES["float32"], ("batch", 4)),
        TensorSpec(DTYPES["bfloat16"], (["*", 2, "batch"],)),
        TensorSpec(DTYPES["int64"], ()),
        ScalarSpec("int", "n"),
        ScalarSpec("float"),
        ConstantSpec("fast"),
    ),
    result_tree=["tuple", [0, ["namedtuple", "m:R", [["y", 1]]]]],
    results=(TensorSpec(DTYPES["bool"], ("batch",)), ConstantSpec(None)),
    dims=(Dim("batch", 1, 8, 4, "s0"), Dim("n", 0, None)),
    mutates=("cache.keys",),
    location="model.py:3",
    producer={"pelton": "0.1.0"},
    profiles=(Profile("short", {"n": (1, 1, 1)}),),
)


def without_values(*kinds: str) -> Signature:
    """Return the signature of a function with tensors under the names a, b, c, ... of `kinds`."""
    spec = TensorSpec(DTYPES["float32"], ())
    parameters = [
        Parameter(chr(97 + index), kind, ["tuple", [index]] if kind == "VAR_POSITIONAL" else index)
        for index, kind in enumerate(kinds)
    ]
    return Signature("main", tuple(parameters), (spec,) * len(parameters))


# As text


def test_json_gives_the_same_signature_back() -> None:
    assert Signature.from_json(FULL.to_json()) == FULL


@pytest.mark.parametrize("value", [None, True, 0, -1.5, float("inf"), "text", 'with "quotes"\n'])
def test_constant_of_every_kind_is_kept(value: Any) -> None:
    signature = Signature("f", (Parameter("a", POSITIONAL, 0),), (ConstantSpec(value),))
    read = Signature.from_json(signature.to_json()).inputs[0]
    assert isinstance(read, ConstantSpec)
    assert (type(read.value), read.value) == (type(value), value)


def test_signature_without_profiles_of_an_older_file_is_read() -> None:
    data = json.loads(FULL.to_json())
    del data["profiles"]
    assert Signature.from_json(json.dumps(data)).profiles == ()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"format":1}', "1" * 5, "[" * 9999])
def test_text_that_is_no_signature_is_refused(text: str) -> None:
    with pytest.raises(ArtifactError, match="not a signature"):
        Signature.from_json(text)


@pytest.mark.parametrize("found", [FORMAT + 1, 0, "1", None])
def test_other_format_is_refused_with_both_versions(found: object) -> None:
    text = json.dumps({**json.loads(FULL.to_json()), "format": found})
    with pytest.raises(ArtifactError) as caught:
        Signature.from_json(text)
    assert str(caught.value) == (
        f"signature of format {found!r}, this version of Pelton reads format {FORMAT}; "
        "load the artifact with the version that made it, or compile it again"
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", 3),
        ("parameters", [["x", "SIDEWAYS", 0]]),
        ("parameters", [["x", POSITIONAL, 9]]),
        ("parameters", [["not a name", POSITIONAL, 0]]),
        ("parameters", [["x", POSITIONAL, 0], ["x", POSITIONAL, 1]]),
        ("inputs", [["tensor", "float33", []]] * 6),
        ("inputs", [["tensor", "float32", [1.5]]] * 6),
        ("inputs", [["tensor", "float32", [["^", 1, 2]]]] * 6),
        ("inputs", [["tensor", "float32", ["nowhere"]]] * 6),
        ("inputs", [["text", 1]] * 6),
        ("inputs", [["constant", [1]]] * 6),
        ("result_tree", ["list", [0, 7]]),
        ("dims", [["batch", "1", 8, None, ""]]),
        ("dims", [["batch", 1]]),
        ("mutates", [1]),
        ("location", None),
        ("producer", 5),
        ("profiles", [["p", {"n": [1, 2]}]]),
        ("inputs", [["tensor", "float32", [""]]] * len(FULL.inputs)),
    ],
)
def test_damaged_field_is_refused(field: str, value: object) -> None:
    text = json.dumps({**json.loads(FULL.to_json()), field: value})
    with pytest.raises(ArtifactError, match="not a signature"):
        Signature.from_json(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.sampled_from(["x", "dict", "tensor"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(st.sampled_from(list(json.loads(FULL.to_json()))), JSON)
def test_any_other_value_of_a_field_is_read_or_refused(field: str, value: object) -> None:
    text = json.dumps({**json.loads(FULL.to_json()), field: value})
    try:
        signature = Signature.from_json(text)
    except ArtifactError:
        return
    str(signature)
    list(signature.named_inputs())
    signature.python()


# For people


def test_signature_shows_names_types_sizes_and_ranges() -> None:
    assert str(FULL) == (
        "main(x: float32[batch, 4], cache['keys'][0]: bfloat16[2*batch], cache['keys'][1]: int64[],"
        " n: int n, rest[0]: float, mode: 'fast') -> (bool[batch], None) "
        "where batch=1..8, n=0.. in 'short' (n=1..1)"
    )


def test_paths_of_inputs_follow_the_containers() -> None:
    expected = ("x", "cache['keys'][0]", "cache['keys'][1]", "n", "rest[0]", "mode")
    assert FULL.input_paths() == expected


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (TensorSpec(DTYPES["int8"], ()), "int8[]"),
        (TensorSpec(DTYPES["int8"], (["+", "n", 1],)), "int8[n + 1]"),
        (ScalarSpec("bool"), "bool"),
        (ConstantSpec("a"), "'a'"),
    ],
)
def test_leaf_shows_its_type(spec: Leaf, text: str) -> None:
    assert str(spec) == text


def test_only_a_shape_of_numbers_is_static() -> None:
    assert TensorSpec(DTYPES["int8"], (2, 3)).static_shape == (2, 3)
    assert TensorSpec(DTYPES["int8"], (2, "n")).static_shape is None


# For Python


def test_kinds_of_parameters_are_those_of_the_function() -> None:
    signature = without_values("POSITIONAL_ONLY", POSITIONAL, "VAR_POSITIONAL", "KEYWORD_ONLY")
    assert str(signature.python()) == "(a, /, b, *c, d)"


def test_constant_is_a_default() -> None:
    signature = without_values(POSITIONAL, POSITIONAL)
    signature = dataclasses.replace(signature, inputs=(signature.inputs[0], ConstantSpec(2.5)))
    assert str(signature.python()) == "(a, b=2.5)"


def test_constant_before_a_required_parameter_is_keyword_only() -> None:
    signature = without_values(POSITIONAL, POSITIONAL)
    signature = dataclasses.replace(signature, inputs=(ConstantSpec(2.5), signature.inputs[1]))
    assert str(signature.python()) == "(b, *, a=2.5)"


def test_container_of_constants_is_a_default() -> None:
    tree = ["dict", [["low", 0], ["high", 1]]]
    signature = Signature(
        "f", (Parameter("limits", POSITIONAL, tree),), (ConstantSpec(1), ConstantSpec(2))
    )
    assert signature.python().parameters["limits"].default == {"low": 1, "high": 2}


def test_argument_that_was_none_at_export_is_optional() -> None:
    signature = Signature("f", (Parameter("mask", POSITIONAL, None),))
    assert signature.python() == inspect.Signature(
        [inspect.Parameter("mask", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)]
    )
