"""The walk over a function: names, conversions, globals, and what is said of failures."""

from __future__ import annotations

import pytest
import torch
from iree.compiler.ir import Type

from pelton.aot.raising.fx.raiser import Options, Raiser, identifier
from pelton.aot.raising.fx.scope import KEPT, dtype_of
from pelton.aot.spec.errors import UnsupportedOpError
from tests.aot.raising.texts import body, raiser_of, same, source_of

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fc.weight", "fc_weight"), ("0.weight", "_0_weight"), ("class", "_class"), ("", "_"),
        ("a-b c", "a_b_c"), ("é", "é"), ("cache['keys'][0]", "cache_keys_0"), ("[0]", "_0"),
    ],
)  # fmt: skip
def test_names_become_variables(name: str, expected: str) -> None:
    assert identifier(name) == expected
    assert expected.isidentifier()


def test_names_are_given_once_even_where_they_look_numbered() -> None:
    raiser = raiser_of()
    names = [raiser.unique(base) for base in ("x", "x", "x_1", "x", "x_2", "x_1")]
    assert len({*names}) == len(names)
    assert names[:2] == ["x", "x_1"]


def test_a_number_becomes_a_tensor_of_the_type_and_a_tensor_is_converted() -> None:
    raiser = raiser_of()
    x = raiser.root.placeholder("x", torch.float32)
    whole = raiser.as_tensor(x, torch.int8)
    assert raiser.as_tensor(x, torch.float32) is x
    outputs = (raiser.as_tensor(True, torch.bool), raiser.as_tensor(3, torch.float16), whole)
    yes, number, converted = raiser.root.finish(outputs)(torch.tensor(-2.7))
    assert same(yes, True, torch.bool)
    assert same(number, 3.0, torch.float16)
    assert same(converted, -2, torch.int8)


def test_numbers_are_taken_out_of_tensors_only() -> None:
    raiser = raiser_of()
    assert raiser.as_number(4) == 4
    symbol = raiser.root.placeholder("n", None)
    assert raiser.as_number(symbol) is symbol
    taken = raiser.as_number(raiser.root.placeholder("x", torch.int64))
    assert dtype_of(taken) is None
    assert raiser.root.finish((taken,))(1, torch.tensor(9)) == (9,)


@pytest.mark.parametrize("type_", ["!torch.int", "!torch.float", "!torch.bool"])
def test_a_number_of_torch_stays_a_number(type_: str) -> None:
    raiser = raiser_of()
    context = raiser.source.module_op.context
    assert raiser.typed_as(5, Type.parse(type_, context)) == 5
    tensor = raiser.root.placeholder("x", torch.int64)
    assert dtype_of(raiser.typed_as(tensor, Type.parse(type_, context))) is None


def test_a_value_of_another_type_is_a_tensor_in_what_it_holds() -> None:
    raiser = raiser_of()
    i8 = Type.parse("i8", raiser.source.module_op.context)
    assert dtype_of(raiser.typed_as(5, i8)) is torch.int8
    unsigned = raiser.root.placeholder("x", torch.uint8)  # MLIR's i8 has no sign
    assert raiser.typed_as(unsigned, i8) is unsigned


def test_effects_are_kept_unless_they_are_left_out() -> None:
    raiser = raiser_of()
    raiser.emit_effect(print, "x")
    (node,) = raiser.root.graph.nodes
    assert node.meta[KEPT]
    raiser = raiser_of(effects=False)
    raiser.emit_effect(print, "x")
    assert not [*raiser.root.graph.nodes]


GLOBALS = """
util.global private mutable @__auto.odd {pelton.dtype = "bool"} = dense<[1, 0]> : tensor<2xi8>
util.global private @__auto.class = dense<[1.0, 2.0]> : tensor<2xf32>
util.global private @__auto.constant_1 = dense<7.0> : tensor<1xf32>
util.global private @__auto.size = 3 : index
"""


def test_a_bool_is_stored_as_a_bool_and_loaded_as_a_byte() -> None:
    raiser = raiser_of(GLOBALS)
    odd = raiser.source.globals["__auto.odd"]
    first = raiser.load(odd)
    assert dtype_of(first) is torch.int8
    raiser.store(odd, raiser.emit(aten.mul.Scalar, first, 2, dtype=torch.int8))
    module = raiser.root.finish((raiser.current(odd), raiser.load(odd)))
    now, loaded = module(torch.tensor([True, False]))
    assert same(now, [True, False], torch.bool)
    assert same(loaded, [1, 0], torch.int8)


def test_state_is_one_input_however_often_it_is_loaded() -> None:
    raiser = raiser_of(GLOBALS)
    odd = raiser.source.globals["__auto.odd"]
    assert raiser.current(odd) is raiser.current(odd)
    assert [*raiser.state_inputs] == ["__auto.odd"]


def test_what_a_branch_stores_is_forgotten_behind_it_and_its_inputs_are_not() -> None:
    raiser = raiser_of(GLOBALS)
    odd = raiser.source.globals["__auto.odd"]
    with pytest.raises(RuntimeError), raiser.nested() as scope:
        assert raiser.scope is scope
        raiser.store(odd, 1)
        raiser.current(odd)
        raise RuntimeError
    assert raiser.scope is raiser.root
    assert raiser.state == {}


def test_a_weight_is_a_buffer_read_once_or_an_input() -> None:
    raiser = raiser_of(GLOBALS)
    weight = raiser.source.globals["__auto.class"]
    assert raiser.load(weight) is raiser.load(weight)
    assert raiser.root.finish((raiser.load(weight),))()[0].tolist() == [1, 2]
    raiser = raiser_of(GLOBALS, weights_as_inputs=True)
    weight = raiser.source.globals["__auto.class"]
    assert raiser.load(weight).op == "placeholder"
    assert [*raiser.weights] == ["__auto.class"]


def test_a_number_of_the_module_is_a_python_number() -> None:
    raiser = raiser_of(GLOBALS)
    found = raiser.load(raiser.source.globals["__auto.size"])
    assert found == 3
    assert type(found) is int


def test_a_constant_does_not_take_the_place_of_a_weight_that_is_called_like_it() -> None:
    raiser = raiser_of(GLOBALS)
    weight = raiser.load(raiser.source.globals["__auto.constant_1"])
    constants = [raiser.constant(torch.tensor([float(n)])) for n in range(3)]
    module = raiser.root.finish((weight, *constants))
    assert [value.item() for value in module()] == [7, 0, 1, 2]


def failing(text: str) -> Raiser:
    """Return a walk whose handlers fail."""

    def handler_of(op: object) -> object:
        def fail(raiser: object, op: object) -> None:
            raise ValueError("of\n  its own")

        return fail

    return Raiser(source_of(text), Options(), handler_of)  # type: ignore[arg-type]


def test_a_failure_of_a_handler_names_the_operation_and_the_line() -> None:
    raiser = failing(body('%c = arith.constant 1 : i64 loc("model.py":3:1) return'))
    with pytest.raises(UnsupportedOpError) as caught:
        raiser.run(raiser.source.function("main").regions[0].blocks[0])
    assert "arith.constant cannot be raised: ValueError: of its own" in str(caught.value)
    assert caught.value.operators == ("arith.constant",)
    assert caught.value.location is not None and caught.value.location.line == 3
    assert isinstance(caught.value.__cause__, ValueError)


def test_nodes_have_the_line_of_their_operation_and_those_without_that_before() -> None:
    raiser = raiser_of(
        body(
            """
            %a = arith.addi %x, %x : i32 loc("model.py":3:1)
            %b = arith.muli %a, %x : i32 loc(unknown)
            return %b : i32
            """,
            "%x: i32",
            "i32",
        )
    )
    block = raiser.source.function("main").regions[0].blocks[0]
    raiser.bind_arguments(block, [raiser.root.placeholder("x", torch.int32)])
    raiser.run(block)
    calls = [node for node in raiser.root.graph.nodes if node.op == "call_function"]
    assert [node.stack_trace for node in calls] == ['File "model.py", line 3, in forward'] * 2


def test_values_of_a_caller_are_not_known_in_what_it_calls() -> None:
    raiser = raiser_of(body("%c = arith.constant 1 : i64 return %c : i64", "", "i64"))
    (value,) = raiser.run(raiser.source.function("main").regions[0].blocks[0])
    with raiser.called(), pytest.raises(KeyError):
        raiser.value(value)
    assert raiser.value(value) == 1


@pytest.mark.parametrize(
    "name", ["graph", "code", "training", "forward", "parameters", "_buffers", "state_dict", "T"]
)
def test_a_weight_may_be_called_like_a_part_of_a_module_of_torch(name: str) -> None:
    text = f"util.global private @__auto.{name} = dense<3.0> : tensor<1xf32>"
    raiser = raiser_of(text)
    (item,) = raiser.source.globals.values()
    x = raiser.root.placeholder("x", torch.float32)
    added = raiser.emit(aten.add.Tensor, x, raiser.load(item), dtype=torch.float32)
    assert raiser.root.finish((added,))(torch.tensor([1.0]))[0].tolist() == [4]
