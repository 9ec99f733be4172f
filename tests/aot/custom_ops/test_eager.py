"""Custom operators in eager: compiled once for all shapes, checked by name, with their numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import runtime
from pelton.aot.custom_ops import custom_op, eager
from pelton.aot.custom_ops.eager import _argument, _expected, _signature, run_compiled
from pelton.aot.ir.elements import dtype_row
from pelton.aot.lowering.custom.operator import CustomOp, find
from pelton.runtime.call.signature import ScalarSpec, TensorSpec
from tests.aot.custom_ops.operators import product
from tests.programs import assert_same

scaled = custom_op(
    "testing::scaled(Tensor x, float factor, int kept, int named, bool flag) -> Tensor",
    shapes="n -> n",
    body="%0 = util.constant $named  return %x : $x",
)
"""An operator with numbers, one of which its text names; it is not compiled."""


def operator(name: str) -> CustomOp:
    found = find(f"testing.{name}")
    assert found is not None
    return found


def test_numbers_are_arguments_unless_the_text_names_them() -> None:
    op = operator("scaled")
    given: dict[str, Any] = {"factor": 0.5, "kept": 3, "named": 4, "flag": True}
    found = {name: _argument(op, name, value) for name, value in given.items()}
    assert [found[name].type for name in given] == ["f64", "i64", None, "i1"]
    assert found["named"].constant == 4


@pytest.mark.parametrize("value", [None, [1, 2], "text", torch.float16], ids=str)
def test_other_values_are_constants(value: Any) -> None:
    argument = _argument(operator("scaled"), "kept", value)
    assert (argument.type, argument.constant) == (None, value)


def test_tensors_are_of_dynamic_sizes() -> None:
    found = _argument(operator("scaled"), "x", torch.zeros(2, 0, dtype=torch.bfloat16))
    assert found.type == "tensor<?x?xbf16>"
    assert _argument(operator("scaled"), "x", torch.tensor(1)).type == "tensor<i64>"


def test_results_are_expected_without_computing_them() -> None:
    x = torch.zeros(2, 3, requires_grad=True)
    (made,) = _expected(operator("product"), {"x": x, "y": torch.zeros(3, 5)})
    assert (made.device.type, tuple(made.shape)) == ("meta", (2, 5))
    assert not made.requires_grad


def test_the_signature_has_a_dimension_for_each_size_and_unknown_results() -> None:
    row = dtype_row(torch.float32, "x")
    inputs = [torch.zeros(2, 3), 1, True, 0.5, torch.tensor(1)]
    found = _signature(["x", "n", "b", "f", "s"], inputs, [(row, 2), (row, 0)])
    assert found.inputs == (
        TensorSpec(row, ("x_dim0", "x_dim1")),
        ScalarSpec("int"),
        ScalarSpec("bool"),
        ScalarSpec("float"),
        TensorSpec(dtype_row(torch.int64, "s"), ()),
    )
    assert [dim.name for dim in found.dims] == ["x_dim0", "x_dim1"]
    assert [leaf.shape for leaf in found.results] == [("?", "?"), ()]
    assert found.result_tree == ["tuple", [0, 1]]
    assert _signature([], [], [(row, 0)]).result_tree == 0
    assert _signature([], [], []).result_tree == ["tuple", []]


def test_what_the_operator_refuses_is_refused_at_the_users_line() -> None:
    given = {"x": torch.zeros(2, 3), "y": torch.zeros(4, 5)}
    with pytest.raises(runtime.SignatureError, match="size 0 of y must be k, 3: 4") as caught:
        run_compiled(operator("product"), given)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_operator_without_an_implementation_is_compiled_once_for_all_sizes() -> None:
    before = len(eager._COMPILED)
    for rows, inner, columns in ((2, 3, 4), (1, 1, 1), (5, 0, 2)):
        x, y = torch.randn(rows, inner), torch.randn(inner, columns)
        assert_same(product(x, y), x @ y)
    assert len(eager._COMPILED) == before + 1


def test_eager_arguments_that_do_not_fit_are_refused_by_name() -> None:
    with pytest.raises(
        runtime.SignatureError, match="testing::product: size 0 of y must be k, 3: 4"
    ):
        product(torch.ones(2, 3), torch.ones(4, 5))


def test_eager_operator_takes_strided_tensors_and_those_with_gradients() -> None:
    x, y = torch.randn(3, 2).T, torch.randn(3, 4, requires_grad=True)
    assert_same(product(x, y).detach(), (x @ y).detach())
