"""Entry points: ports, bounds and names of members."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace

import pytest
import torch

from pelton.runtime.artifacts.entry_points import (
    LIBRARIES,
    Bounds,
    Port,
    Role,
    member_name,
)
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import TensorSpec
from tests.runtime.manifests import entry_point, port


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("engine", "engines/main.engine"),
        ("reference", "reference/main.onnx"),
        ("reference_data", "reference/main.onnx.data"),
        ("fallback", "fallback/main.vmfb"),
        ("fallback_reference", "fallback_reference/main.vmfb"),
        ("layers", "layers/main.json"),
    ],
)
def test_name_of_a_member(role: Role, name: str) -> None:
    assert member_name(role, "main") == name


def test_names_of_functions_are_quoted() -> None:
    assert member_name("engine", "a/../b c.d") == "engines/a%2F..%2Fb%20c.d.engine"


def test_libraries_are_of_different_modules() -> None:
    assert {flavor: library.module for flavor, library in LIBRARIES.items()} == {
        "rtx": "tensorrt_rtx",
        "tensorrt": "tensorrt",
    }


def test_port_of_the_compiler_has_an_element_type_of_torch() -> None:
    given = SimpleNamespace(
        name="k", kind="user", origin="k", dtype=torch.int64, shape=(), is_scalar=True
    )
    assert Port.of(given, host=True) == Port(
        "k", "user", "k", DTYPES["int64"], (), is_scalar=True, host=True
    )
    assert Port.of(given).host is False


def test_spec_of_a_port() -> None:
    assert port("x").spec == TensorSpec(DTYPES["float32"], ("n", 4))


@pytest.mark.parametrize(
    ("values", "inside"),
    [((1, 4), True), ((8, 4), True), ((0, 4), False), ((9, 4), False), ((2,), False), ((), False)],
)
def test_bounds_contain_their_ends(values: tuple[int, ...], inside: bool) -> None:
    assert Bounds((1, 4), (2, 4), (8, 4)).contains(iter(values)) is inside


def test_ports_of_a_kind_are_by_origin() -> None:
    function = entry_point()
    assert list(function.ports("user")) == ["result", "x", "k"]
    assert list(function.ports("state")) == ["total"]
    assert function.ports("state")["total"].name == "state.total"  # the input, where it is both
    assert function.ports("parameter") == {}
    assert function.name == "main"


def test_fields_of_a_port_are_those_of_the_format() -> None:
    names = [each.metadata.get("json_name", each.name) for each in fields(Port)]
    assert names == ["name", "kind", "origin", "dtype", "shape", "number", "host"]
