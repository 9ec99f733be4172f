"""Operators of the torch dialect on numbers: known before the run, at the call, and of tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton.aot.raising.fx.torch_numbers import FUNCTIONS
from tests.aot.raising.texts import body, raised, run, targets_of


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("aten.add.int", (7, -9), -2), ("aten.sub.int", (7, -9), 16),
        ("aten.mul.int", (7, -9), -63),
        ("aten.floordiv.int", (-7, 2), -4), ("aten.remainder.int", (-7, 2), 1),
        ("aten.div.int", (7, 2), 3.5), ("aten.neg.int", (7,), -7), ("aten.pow.int", (2, 3), 8),
        ("aten.eq.int", (2, 2), True), ("aten.ne.int", (2, 2), False),
        ("aten.lt.int", (1, 2), True),
        ("aten.le.int", (2, 2), True), ("aten.gt.int", (1, 2), False),
        ("aten.ge.int", (1, 2), False),
        ("aten.lt.float_int", (1.5, 2), True), ("aten.Bool.int", (2,), True),
        ("aten.Bool.float", (0.0,), False), ("aten.Float.Scalar", (3,), 3.0),
        ("aten.Float.bool", (True,), 1.0), ("aten.Int.Scalar", (-2.7,), -2),
        ("aten.Int.float", (2.7,), 2), ("aten.Int.bool", (True,), 1),
        ("aten.__and__.bool", (True, False), False), ("aten.__or__.bool", (True, False), True),
        ("aten.__not__", (True,), False), ("aten.ceil.float", (1.2,), 2),
        ("aten.sqrt.int", (9,), 3.0), ("prim.max.int", (2, 5), 5), ("prim.min.int", (2, 5), 2),
    ],
)  # fmt: skip
def test_numbers_that_are_known_are_computed_at_once(
    name: str, numbers: tuple[Any, ...], expected: Any
) -> None:
    found = FUNCTIONS[name](*numbers)
    assert found == expected
    assert type(found) is type(expected)


SIZES = body(
    """
    %two = torch.constant.int 2
    %a = torch.aten.mul.int %n, %two : !torch.int, !torch.int -> !torch.int
    %b = torch.aten.sub.int %a, %n : !torch.int, !torch.int -> !torch.int
    %c = torch.aten.floordiv.int %b, %two : !torch.int, !torch.int -> !torch.int
    %d = torch.aten.neg.int %c : !torch.int -> !torch.int
    %e = torch.prim.max.int %d, %two : !torch.int, !torch.int -> !torch.int
    %f = torch.aten.Float.Scalar %c : !torch.int -> !torch.float
    %g = torch.aten.gt.int %n, %two : !torch.int, !torch.int -> !torch.bool
    return %c, %d, %e, %f, %g : !torch.int, !torch.int, !torch.int, !torch.float, !torch.bool
    """,
    "%n: !torch.int",
    "!torch.int, !torch.int, !torch.int, !torch.float, !torch.bool",
)


@pytest.mark.parametrize("n", [0, 5, -5])
def test_numbers_of_a_call_are_computed_when_the_graph_runs(n: int) -> None:
    found = run(SIZES, n)
    assert [value.item() for value in found] == [
        n // 2,
        -(n // 2),
        max(-(n // 2), 2),
        n // 2,
        n > 2,
    ]
    assert [value.dtype for value in found] == [torch.int64] * 3 + [torch.float64, torch.bool]


def test_nothing_of_known_numbers_is_left_in_the_graph() -> None:
    text = body(
        """
        %two = torch.constant.int 2
        %a = torch.aten.mul.int %two, %two : !torch.int, !torch.int -> !torch.int
        return %a : !torch.int
        """,
        "",
        "!torch.int",
    )
    assert targets_of(raised(text)) == ["aten.scalar_tensor.default"]


def test_an_operator_of_the_same_name_on_tensors_is_one_on_tensors() -> None:
    text = body(
        """
        %a = torch.aten.neg %x : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
        return %a : !torch.vtensor<[2],f32>
        """,
        "%x: !torch.vtensor<[2],f32>",
        "!torch.vtensor<[2],f32>",
    )
    assert run(text, torch.tensor([1.0, -2.0]))[0].tolist() == [-1, 2]
    assert targets_of(raised(text)) == ["aten.neg.default"]


def test_a_float_of_a_tensor_is_taken_as_a_number() -> None:
    text = body(
        """
        %a = torch.aten.Float.Tensor %x : !torch.vtensor<[],f32> -> !torch.float
        %b = torch.aten.Int.float %a : !torch.float -> !torch.int
        return %b : !torch.int
        """,
        "%x: !torch.vtensor<[],f32>",
        "!torch.int",
    )
    assert [run(text, torch.tensor(value))[0].item() for value in (2.7, -2.7)] == [2, -2]
