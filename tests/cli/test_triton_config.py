"""Model configurations: batches, numbers, state and what the server cannot serve, by themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pelton.cli.triton_config import Word, model_config, render
from pelton.runtime.archive.parameter import parameter_of
from pelton.runtime.archive.parameter_set import ParameterSet
from pelton.runtime.artifacts.entry_points import Bounds, EngineProfile, EntryPoint, Port
from pelton.runtime.artifacts.manifest import Manifest
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import Signature
from pelton.runtime.call.sizes import Dim
from pelton.runtime.errors import ArtifactError

N = Dim("n", 1, 8, 4)


def port(name: str, *shape: Any, dtype: str = "float32", **options: Any) -> Port:
    return Port(name, options.pop("kind", "user"), name, DTYPES[dtype], shape, **options)


def entry_point(
    inputs: list[Port], outputs: list[Port], *dims: Dim, name: str = "main", **changes: Any
) -> EntryPoint:
    members = {"engine": "engines/main.engine", "reference": "reference/main.onnx"}
    signature = Signature(name, (), (), dims=dims)
    return EntryPoint(signature, tuple(inputs), tuple(outputs), **{"members": members, **changes})


def config(function: EntryPoint, *others: EntryPoint, **options: Any) -> str:
    manifest = Manifest(options.pop("flavor", "tensorrt"), "10.9", (), (function, *others))
    state = ParameterSet(options.pop("state", []))
    made = model_config("m", manifest, function, state, **options)
    assert made.initial_state == options.get("files", {})
    return made.text


# Text format


def test_messages_are_nested_and_lists_are_in_brackets() -> None:
    message = {"a": {"b": [{"c": 1}, {"c": True}]}, "w": Word("X"), "e": [], "n": [1, 2], "s": 'q"'}
    assert render(message) == (
        "a {\n  b {\n    c: 1\n  }\n  b {\n    c: true\n  }\n}\n"
        'w: X\ne: []\nn: [ 1, 2 ]\ns: "q\\""\n'
    )
    assert render({}) == ""
    assert render({"empty": {}}) == "empty {\n}\n"


# Batches


def batched(*ports: Port, dims: tuple[Dim, ...] = (N,), **options: Any) -> str:
    return config(entry_point(list(ports), [port("r", "n", 3)], *dims), **options)


def test_a_first_dimension_of_all_is_a_batch_without_being_told() -> None:
    text = batched(port("x", "n", 4), port("y", "n"))
    assert "max_batch_size: 8\n" in text
    assert "preferred_batch_size: [ 4 ]" in text
    assert "dims: [ 4 ]" in text
    # y has no further dimension, and the server's tensors have at least one
    assert 'name: "y"\n  data_type: TYPE_FP32\n  dims: [ 1 ]\n  reshape {\n    shape: []\n' in text


@pytest.mark.parametrize(
    "dims",
    [(Dim("n", 2, 8),), (Dim("n", 1, None),), ()],
    ids=["at_least_2", "unbounded", "unknown"],
)
def test_a_dimension_that_allows_no_single_row_or_any_number_is_no_batch(
    dims: tuple[Dim, ...],
) -> None:
    text = batched(port("x", "n", 4), dims=dims)
    assert "max_batch_size: 0\n" in text
    assert "dims: [ -1, 4 ]" in text
    assert "dynamic_batching" not in text


@pytest.mark.parametrize(
    "x",
    [
        port("x", "n", "n"),
        port("x", "m", 4),
        port("x", 4),
        port("x"),
        port("x", "n", ["*", "n", 2]),
        port("x", ["+", "n", 1], 4),
        port("x", "?", 4),
        port("x", "n", host=True),
    ],
    ids=["twice", "other", "static", "number", "derived", "sum", "unknown", "host"],
)
def test_a_dimension_that_is_not_the_first_of_all_is_no_batch(x: Port) -> None:
    assert "max_batch_size: 0\n" in batched(x, dims=(N, Dim("m", 1, 8)))


def test_batches_of_one_are_not_preferred_and_none_can_be_asked_for() -> None:
    once = batched(port("x", "n", 4), dims=(Dim("n", 0, 8, 1),))
    assert "dynamic_batching {\n}\n" in once
    assert "max_batch_size: 0\n" in batched(port("x", "n", 4), batching=False)


def test_an_entry_point_without_inputs_is_no_batch() -> None:
    text = config(entry_point([], [port("r", 3)]))
    assert "max_batch_size: 0\n" in text
    assert "input: []\n" in text


# Tensors


@pytest.mark.parametrize(
    ("dtype", "word"),
    [("bool", "BOOL"), ("uint8", "UINT8"), ("int64", "INT64"), ("float16", "FP16"),
     ("bfloat16", "BF16"), ("float64", "FP64")],
)  # fmt: skip
def test_element_types_have_the_servers_names(dtype: str, word: str) -> None:
    assert f"data_type: TYPE_{word}\n" in config(entry_point([port("x", 2, dtype=dtype)], []))


@pytest.mark.parametrize(("backend", "stated"), [("tensorrt", True), ("onnxruntime", False)])
def test_only_engines_have_shape_tensors(backend: Any, stated: bool) -> None:
    text = config(entry_point([port("n", dtype="int64", host=True)], []), backend=backend)
    assert ("is_shape_tensor: true\n" in text) is stated


@pytest.mark.parametrize(("count", "stated"), [(0, False), (1, False), (3, True)])
def test_all_profiles_of_an_engine_are_used(count: int, stated: bool) -> None:
    profiles = tuple(EngineProfile(f"p{i}", {"x": Bounds((1,), (1,), (2,))}) for i in range(count))
    function = entry_point([port("x", "n")], [], N, profiles=profiles)
    assert ('profile: [ "0", "1", "2" ]' in config(function)) is stated
    assert "profile" not in config(function, backend="onnxruntime")


# State


def stateful(*shape: Any, name: str = "total", **options: Any) -> EntryPoint:
    before = replace(port(f"state.{name}", *shape, kind="state"), origin=name)
    after = replace(port(f"new_state.{name}", *shape, kind="state"), origin=name)
    return entry_point([port("x", 4), before], [port("r", 4), after], **options)


def test_state_of_zeros_needs_no_file() -> None:
    text = config(stateful(4), state=[parameter_of("total", np.zeros(4, np.float32))])
    assert 'input_name: "state.total"\n    output_name: "new_state.total"' in text
    assert "zero_data: true\n" in text
    assert 'name: "x"' in text
    assert 'input {\n  name: "state.total"' not in text


@pytest.mark.parametrize("value", [1.0, -0.0, float("nan")], ids=["one", "minus_zero", "nan"])
def test_other_state_has_a_file_of_a_name_that_is_no_path(value: float) -> None:
    name = "a/b é"
    function = stateful(2, name=name)
    initial = np.array([0, value], np.float32)
    manifest = Manifest("tensorrt", "10.9", (), (function,))
    made = model_config("m", manifest, function, ParameterSet([parameter_of(name, initial)]))
    assert made.initial_state == {"a%2Fb%20%C3%A9": initial.tobytes()}
    assert 'data_file: "a%2Fb%20%C3%A9"\n' in made.text
    assert "zero_data" not in made.text


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (stateful(), "state 'total' has no dimensions, which the server needs; give it shape"),
        (replace(stateful(4), inputs=(port("x", 4),)), "'total' is only written"),
        (replace(stateful(4), outputs=()), "'total' is only read"),
    ],
    ids=["scalar", "written", "read"],
)
def test_state_that_the_server_cannot_keep_is_refused(function: EntryPoint, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        config(function)


def test_state_that_another_entry_point_uses_is_refused() -> None:
    with pytest.raises(ArtifactError, match="'total' is shared with get, and models of the server"):
        config(stateful(4), stateful(4, name="total2"), replace(stateful(4), signature=Signature(
            "get", (), ())))  # fmt: skip


# Refusals


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (entry_point([], []), {"flavor": "rtx"}, "these are of TensorRT-RTX; compile it with"),
        (entry_point([], [], members={}), {}, r"has no engine of it \(IREE runs it\)"),
        (entry_point([], [], members={}), {"backend": "onnxruntime"}, "has no reference of it"),
        (entry_point([port("w", 2, kind="parameter")], []), {}, "1 weights are inputs of it"),
        (entry_point([port("x", dtype="complex64")], []), {}, "has no complex64, the type of x"),
        (entry_point([], [port("r", dtype="float8_e5m2")]), {}, "no float8_e5m2, the type of r"),
    ],
    ids=["flavor", "engine", "reference", "weights", "input", "output"],
)
def test_what_the_server_cannot_serve_is_refused(
    function: EntryPoint, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArtifactError, match=f"entry point 'main' cannot be served: .*{message}"):
        config(function, **options)
