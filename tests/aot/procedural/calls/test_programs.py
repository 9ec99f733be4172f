"""Arguments of calls of torch functions: inputs, constants, ties, and the examples of sizes."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.capture.arguments import Arguments, TracedInput
from pelton.aot.procedural.calls.captured import Callee, ProgramTable
from pelton.aot.procedural.calls.programs import _flatten_arguments, call, call_function
from pelton.aot.procedural.globals.live_globals import live
from pelton.aot.procedural.module.procedure_trace import ProcedureTrace
from pelton.aot.procedural.values.errors import ProcedureTraceError
from tests.aot.procedural.traces import scalar, tracing


def any_function(x: Any, y: Any = None, *rest: Any, scale: Any = 1) -> Any:
    return x


def flattened(trace: ProcedureTrace, *args: Any, function: Any = any_function, **kw: Any) -> Any:
    return _flatten_arguments(trace, Callee(function, "f"), args, kw)


def given(arguments: Arguments) -> list[Any]:
    return [arguments.leaves[leaf.index].value for leaf in arguments.inputs]


def test_traced_values_are_inputs_and_others_are_constants() -> None:
    with tracing(aot.AbstractTensor(2), aot.AbstractI64) as trace:
        x, n = trace.proxy_posargs
        arguments = flattened(trace, {"a": x, "b": [n, 2.5]}, None, "text", scale=True)
    assert given(arguments) == [x, n]
    assert [leaf.path for leaf in arguments.inputs] == ["x['a']", "x['b'][0]"]
    constants = [leaf for leaf in arguments.leaves if not isinstance(leaf, TracedInput)]
    assert constants == [2.5, "text", True]


def test_a_torch_tensor_is_an_input_of_its_types() -> None:
    with tracing() as trace:
        arguments = flattened(trace, torch.zeros(2, 3, dtype=torch.int16))
    (leaf,) = arguments.inputs
    assert isinstance(leaf.example, torch.Tensor)
    assert (leaf.example.dtype, tuple(leaf.example.shape)) == (torch.int16, (2, 3))


@pytest.mark.parametrize(
    ("kind", "function", "is_tensor"),
    [
        ("i64", any_function, False),
        ("index", any_function, False),
        ("f32", any_function, True),
        ("i1", any_function, True),
        ("i64", operator.add, True),
    ],
    ids=["i64", "index", "f32", "i1", "operator"],
)
def test_only_integers_are_passed_as_numbers(kind: str, function: Any, is_tensor: bool) -> None:
    with tracing() as trace:
        number = scalar(trace, 1, kind)
        callee = Callee(any_function, "f", scalars_as_tensors=function is operator.add)
        arguments = _flatten_arguments(trace, callee, [number], {})
    (leaf,) = arguments.inputs
    assert isinstance(leaf.example, torch.Tensor) is is_tensor


def test_the_example_of_a_dynamic_size_is_no_static_size_of_the_call() -> None:
    with tracing(aot.AbstractTensor(None, 7), aot.AbstractTensor(11, 13)) as trace:
        arguments = flattened(trace, *trace.proxy_posargs)
    first, second = (leaf.example for leaf in arguments.inputs)
    assert isinstance(first, torch.Tensor)
    assert isinstance(second, torch.Tensor)
    assert tuple(first.shape) == (17, 7)
    assert tuple(second.shape) == (11, 13)
    assert list(arguments.inputs[0].axes) == [0]
    assert arguments.inputs[1].axes == {}


def test_a_global_that_is_given_twice_is_one_input() -> None:
    with tracing() as trace:
        info = aot.export_global_tree([torch.zeros(2), torch.zeros(2)])
        tracked = info.track(trace.module_builder, "t")
        a, b, a_again = (tracked[index].materialize() for index in (0, 1, 0))
        arguments = flattened(trace, a, b, a_again, {"x": a})
    assert given(arguments) == [a, b]
    assert arguments.ties == {2: 0, 3: 0}


def test_a_value_that_is_given_twice_is_two_inputs() -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        (x,) = trace.proxy_posargs
        arguments = flattened(trace, x, x)
    assert given(arguments) == [x, x]
    assert arguments.ties == {}


def test_a_collection_of_globals_is_a_plain_container() -> None:
    with tracing() as trace:
        (tracked,) = aot.export_global_tree([torch.zeros(2)]).track(trace.module_builder, "t")
        arguments = flattened(trace, live([tracked.materialize()], "self.t"))
    assert arguments.parameters[0].tree == ["list", [0]]


def test_arguments_that_the_function_does_not_take_are_refused_at_the_users_line() -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        with pytest.raises(ProcedureTraceError, match=r"f\(\): calling g: .*nothing") as caught:
            call(trace, Callee(any_function, "g"), trace.proxy_posargs, {"nothing": 1})
        assert caught.value.location is not None
        assert len(ProgramTable.of(trace.module_builder)) == 0


def fails(x: Any) -> Any:
    raise ValueError("not today")


def test_an_error_of_the_function_keeps_its_own_line() -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        with pytest.raises(aot.ExportError, match="not today") as caught:
            call_function(trace, fails, trace.proxy_posargs, {})
        assert "calling fails" not in str(caught.value)
        assert caught.value.location is not None
        assert caught.value.location.line == fails.__code__.co_firstlineno + 1


def test_a_module_takes_the_arguments_of_its_forward() -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        arguments = flattened(trace, function=torch.nn.ReLU(), input=trace.proxy_posargs[0])
    assert [parameter.name for parameter in arguments.parameters] == ["input"]


def test_uses_of_one_type_share_a_program() -> None:
    types = [aot.AbstractTensor(2), aot.AbstractTensor(2), aot.AbstractTensor(3)]
    with tracing(*types) as trace:
        x, y, longer = trace.proxy_posargs
        table = ProgramTable.of(trace.module_builder)
        results = [call_function(trace, torch.neg, [value], {}) for value in (x, y)]
        assert len(table) == 1
        assert call_function(trace, torch.neg, [longer], {}).type_shape == [3]
        assert len(table) == 2
    assert [result.type_shape for result in results] == [[2], [2]]
