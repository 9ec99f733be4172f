"""Raised functions: their inputs and outputs, refusals, initializers, and results that alias."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.raising.fx.function import port_name, raise_function, refuse_unsupported
from pelton.aot.spec.errors import ExportError, UnsupportedOpError
from pelton.runtime.errors import ParameterError
from tests.aot.raising.texts import body, raised, run, source_of


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("x", "x"), ("cache['keys'][0]", "cache.keys.0"), ("result.logits", "result.logits"),
        ("result[0][1]", "result.0.1"), ("x['a'].b", "x.a.b"),
    ],
)  # fmt: skip
def test_ports_are_named_by_paths(path: str, name: str) -> None:
    assert port_name(path) == name


STATE = """
util.global private @__auto.weight = dense<2.0> : tensor<2xf32>
util.global private @__auto.scale = #flow.parameter.named<"model"::"scale"> : tensor<2xf32>
util.global private mutable @__auto.calls = 4 : i64
util.global private mutable @__auto.total = dense<1.0> : tensor<2xf32>
util.global private mutable @__auto.only_read = dense<5.0> : tensor<2xf32>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %weight = util.global.load @__auto.weight : tensor<2xf32>
  %scale = util.global.load @__auto.scale : tensor<2xf32>
  %total = util.global.load @__auto.total : tensor<2xf32>
  %read = util.global.load @__auto.only_read : tensor<2xf32>
  %a = arith.addf %x, %weight : tensor<2xf32>
  %b = arith.mulf %a, %scale : tensor<2xf32>
  %c = arith.addf %b, %read : tensor<2xf32>
  %d = arith.addf %c, %total : tensor<2xf32>
  util.global.store %d, @__auto.total : tensor<2xf32>
  %one = arith.constant 1 : i64
  util.global.store %one, @__auto.calls : i64
  return %b : tensor<2xf32>
}
"""
GIVEN = {"model": {"scale": torch.tensor([10.0, 100.0])}}


def test_state_that_is_stored_is_a_result_and_what_is_read_an_input() -> None:
    function = raise_function(source_of(STATE, parameters=GIVEN), "main")
    assert [port.name for port in function.inputs] == ["arg0", "state.total", "state.only_read"]
    assert [port.name for port in function.outputs] == [
        "result", "new_state.total", "new_state.calls",
    ]  # fmt: skip
    assert {name: value.tolist() for name, value in function.initial_state.items()} == {
        "calls": 4, "total": [1, 1], "only_read": [5, 5],
    }  # fmt: skip
    result, total, calls = function.graph_module(
        torch.zeros(2), torch.ones(2), torch.tensor([5.0, 5.0])
    )
    assert result.tolist() == [20, 200]
    assert total.tolist() == [26, 206]
    assert calls.item() == 1


def test_weights_are_inputs_on_demand_behind_the_state() -> None:
    function = raise_function(source_of(STATE, parameters=GIVEN), "main", weights_as_inputs=True)
    assert [(port.name, port.kind, port.origin) for port in function.inputs][-2:] == [
        ("parameter.__auto.weight", "parameter", "__auto.weight"),
        ("parameter.model.scale", "parameter", "model::scale"),
    ]
    assert function.parameters["parameter.model.scale"].tolist() == [10, 100]
    assert not [*function.graph_module.buffers()]


def test_external_parameters_of_other_functions_are_not_needed() -> None:
    text = (
        STATE + "func.func @other(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    )
    assert raised(text, "other").inputs[0].name == "arg0"
    with pytest.raises(ParameterError, match="scale"):
        raised(text)


def test_a_function_that_is_not_there_is_refused() -> None:
    with pytest.raises(ExportError, match="the module has no function 'other'; it has main"):
        raised(body("return"), "other")


def test_results_are_no_inputs_and_share_no_memory() -> None:
    text = body(
        """
        %w = arith.constant dense<3.0> : tensor<1xf32>
        %y = arith.addf %x, %w : tensor<1xf32>
        return %x, %x, %w, %y, %y
          : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
        """,
        "%x: tensor<1xf32>",
        ", ".join(["tensor<1xf32>"] * 5),
    )
    function = raised(text)
    x = torch.tensor([1.0])
    results = function.graph_module(x)
    assert [value.item() for value in results] == [1, 1, 3, 4, 4]
    owned = [x, *function.graph_module.buffers(), *results]
    assert len({value.data_ptr() for value in owned}) == len(owned)


def test_a_function_without_arguments_or_results() -> None:
    function = raised(body("return"))
    assert (function.inputs, function.outputs) == ((), ())
    assert [*function.graph_module()] == []


def test_integers_are_pythons_and_other_numbers_tensors() -> None:
    text = body("return %a, %b, %c : i64, f32, i1", "%a: i64, %b: f32, %c: i1", "i64, f32, i1")
    function = raised(text)
    assert [port.is_python_number for port in function.inputs] == [True, False, False]
    assert all(port.is_scalar for port in (*function.inputs, *function.outputs))
    found = function.graph_module(3, torch.tensor(0.5), torch.tensor(True))
    assert [value.dtype for value in found] == [torch.int64, torch.float32, torch.bool]
    assert [value.item() for value in found] == [3, 0.5, True]


def test_all_operations_without_a_form_are_named_with_their_lines() -> None:
    text = """
    func.func @main(%x: f32) -> f32 {
      %a = math.erf %x : f32 loc("model.py":3:1)
      %b = func.call @inner(%a) : (f32) -> f32
      return %b : f32
    }
    func.func private @inner(%x: f32) -> f32 {
      %a = math.tan %x : f32 loc("model.py":7:1)
      %b = math.erf %a : f32 loc("model.py":3:1)
      return %b : f32
    }
    """
    with pytest.raises(UnsupportedOpError) as caught:
        raised(text)
    assert caught.value.operators == ("math.erf", "math.tan")
    assert "math.erf (at model.py:3)" in str(caught.value)
    assert "math.tan (at model.py:7)" in str(caught.value)


def test_the_body_of_a_custom_operator_is_named_as_the_operator_where_it_is_called() -> None:
    text = """
    func.func @main(%x: f32) -> f32 {
      %b = func.call @body(%x) : (f32) -> f32 loc("model.py":5:1)
      return %b : f32
    }
    func.func private @body(%x: f32) -> f32 attributes {pelton.custom_op = "lib::twice"} {
      %a = math.erf %x : f32
      return %a : f32
    }
    """
    with pytest.raises(UnsupportedOpError, match=r"custom operator lib::twice \(at model\.py:5\)"):
        raised(text)


def test_what_no_function_calls_is_not_refused() -> None:
    text = body("return") + " func.func private @unused(%x: f32) { math.erf %x : f32 return }"
    source = source_of(text)
    refuse_unsupported(source, source.function("main"))
    with pytest.raises(UnsupportedOpError, match=r"no form in torch: math\.erf"):
        refuse_unsupported(source, source.function("unused"))


INITIALIZED = """
util.global private mutable @__auto.a = dense<1.0> : tensor<2xf32>
util.global private @__auto.b : tensor<2xf32>
util.global private mutable @__auto.odd {pelton.dtype = "bool"} = dense<[0, 1]> : tensor<2xi8>
util.initializer {
  %a = util.global.load @__auto.a : tensor<2xf32>
  %twice = arith.addf %a, %a : tensor<2xf32>
  util.global.store %twice, @__auto.a : tensor<2xf32>
  util.return
}
util.initializer {
  %a = util.global.load @__auto.a : tensor<2xf32>
  %more = arith.addf %a, %a : tensor<2xf32>
  util.global.store %more, @__auto.b : tensor<2xf32>
  %ones = arith.constant dense<1> : tensor<2xi8>
  util.global.store %ones, @__auto.odd : tensor<2xi8>
  util.return
}
func.func @main() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi8>) {
  %a = util.global.load @__auto.a : tensor<2xf32>
  %b = util.global.load @__auto.b : tensor<2xf32>
  %odd = util.global.load @__auto.odd : tensor<2xi8>
  return %a, %b, %odd : tensor<2xf32>, tensor<2xf32>, tensor<2xi8>
}
"""


def test_initializers_run_in_order_and_once() -> None:
    a, b, odd = run(INITIALIZED)
    assert (a.tolist(), b.tolist(), odd.tolist()) == ([2, 2], [4, 4], [1, 1])
    source = source_of(INITIALIZED)
    first = raise_function(source, "main").initial_state
    again = raise_function(source, "main").initial_state
    assert first["a"].tolist() == again["a"].tolist() == [2, 2]
    assert first["odd"].dtype is torch.bool


def test_an_initializer_without_a_form_is_refused() -> None:
    text = (
        body("return")
        + " util.initializer { %c = arith.constant 1.0 : f32 %e = math.erf %c : f32 util.return }"
    )
    with pytest.raises(UnsupportedOpError, match=r"math\.erf"):
        raised(text)
