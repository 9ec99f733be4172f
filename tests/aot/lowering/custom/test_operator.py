"""The table of custom operators, and the arguments of their schemas."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from pelton.aot.lowering.custom import operator
from pelton.aot.lowering.custom.operator import (
    CustomOp,
    add,
    bind_arguments,
    find,
    key_of,
    tensor_arguments,
)
from pelton.aot.spec.errors import SourceLocation

ADD = torch.ops.aten.add.Tensor._schema
RELU = torch.ops.aten.relu.default._schema


@pytest.fixture(autouse=True)
def _own_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(operator, "_REGISTERED", {})
    yield


def test_operators_are_found_by_name_and_overload() -> None:
    op = CustomOp("aten::add", ADD, "return", None, None)
    assert find("aten.add.Tensor") is None
    add(op)
    assert find("aten.add.Tensor") is op and find("aten.add") is None
    assert key_of(RELU) == "aten.relu"


def test_a_later_body_stands_in_place_of_an_earlier_one() -> None:
    first, second = (CustomOp("aten::relu", RELU, body, None, None) for body in ("a", "b"))
    add(first)
    add(second)
    assert find("aten.relu") is second


def test_tensor_arguments_may_be_optional() -> None:
    assert tensor_arguments(ADD) == ["self", "other"]
    assert tensor_arguments(torch.ops.aten.conv2d.default._schema) == ["input", "weight", "bias"]
    assert tensor_arguments(torch.ops.aten.cat.default._schema) == []


def test_arguments_are_bound_by_position_name_and_default() -> None:
    assert bind_arguments(ADD, (1, 2), {}) == {"self": 1, "other": 2, "alpha": 1}
    assert bind_arguments(ADD, (1,), {"other": 2, "alpha": 3}) == {
        "self": 1, "other": 2, "alpha": 3,
    }  # fmt: skip


def test_an_error_names_operator_and_line() -> None:
    place = SourceLocation("net.py", 7)
    error = CustomOp("demo::op", RELU, "", None, place).error("its body is empty")
    assert "custom operator demo::op: its body is empty" in str(error)
    assert error.location == place
