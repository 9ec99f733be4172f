"""Signatures of functions that state none."""

from __future__ import annotations

import pytest
from iree.compiler.ir import Context, Module, Operation

from pelton.aot.raising.fx.plain_signature import plain_signature
from pelton.aot.spec.errors import UnsupportedOpError
from pelton.runtime.call.signature import Signature


def function(text: str) -> Operation:
    context = Context()
    module = Module.parse(text, context)
    (found,) = module.body.operations
    _ALIVE.append(module)
    return found.operation


_ALIVE: list[Module] = []


def signature(text: str) -> Signature:
    return plain_signature("f", function(text))


def test_arguments_are_called_by_their_place() -> None:
    found = signature(
        "func.func @f(%a: tensor<2x?xf32>, %b: i64) -> tensor<2x?xf32> "
        "{ return %a : tensor<2x?xf32> }"
    )
    assert [p.name for p in found.parameters] == ["arg0", "arg1"]
    assert str(found).startswith("f(arg0: float32[2, arg0_dim1], arg1: int)")


def test_dynamic_sizes_are_dimensions_of_the_argument() -> None:
    found = signature(
        "func.func @f(%a: tensor<?x?xi8>, %b: tensor<?xi8>) -> tensor<?xi8> "
        "{ return %b : tensor<?xi8> }"
    )
    assert [dim.name for dim in found.dims] == ["arg0_dim0", "arg0_dim1", "arg1_dim0"]


def test_one_result_is_no_tuple() -> None:
    found = signature("func.func @f(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
    assert found.result_tree == 0


def test_several_results_are_a_tuple() -> None:
    found = signature(
        "func.func @f(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) "
        "{ return %a, %a : tensor<f32>, tensor<f32> }"
    )
    assert found.result_tree == ["tuple", [0, 1]]


def test_no_result_is_none() -> None:
    assert signature("func.func @f() { return }").result_tree is None


def test_results_are_those_of_the_function_and_not_what_its_first_block_hands_on() -> None:
    found = signature(
        "func.func @f(%c: i1, %a: i32) -> tensor<2xf32> { cf.cond_br %c, ^a(%a : i32), ^a(%a : i32)"
        " ^a(%b: i32): %r = arith.constant dense<0.0> : tensor<2xf32> return %r : tensor<2xf32> }"
    )
    assert str(found) == "f(arg0: bool, arg1: int) -> (float32[2])"


@pytest.mark.parametrize(
    ("type_", "kind"),
    [("i64", "int"), ("index", "int"), ("f64", "float"), ("i1", "bool"), ("!torch.float", "float")],
)
def test_scalars_have_their_kind(type_: str, kind: str) -> None:
    found = signature(f"func.func @f(%a: {type_}) -> {type_} {{ return %a : {type_} }}")
    assert str(found) == f"f(arg0: {kind}) -> ({kind})"


def test_a_type_without_a_form_is_refused() -> None:
    op = function("func.func @f(%a: !torch.str) -> !torch.str { return %a : !torch.str }")
    with pytest.raises(UnsupportedOpError, match=r"a value of type !torch\.str has no form"):
        plain_signature("f", op)
