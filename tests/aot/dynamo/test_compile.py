"""Compilation of graphs of AOTAutograd: devices, small graphs, fallback, and the call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from pelton.aot.dynamo.compile import (
    compile_graph,
    is_small,
    module_of,
    prepared,
    refuse_devices,
)
from pelton.aot.dynamo.options import read_options
from pelton.aot.spec.errors import UnsupportedOpError
from tests.programs import check_text


def traced(function: Callable[..., Any], *args: Any, symbolic: bool = False) -> GraphModule:
    return make_fx(function, tracing_mode="symbolic" if symbolic else "fake")(*args)


@pytest.mark.parametrize(
    ("elements", "small"), [(0, True), (2**12 - 1, True), (2**12, False)], ids=str
)
def test_a_graph_is_small_by_the_elements_of_all_its_values(elements: int, small: bool) -> None:
    assert is_small(traced(lambda x: x + 1, torch.zeros(elements)).graph) is small


def test_the_values_of_several_results_count() -> None:
    split = traced(lambda x: torch.split(x, 2**12), torch.zeros(2**13))
    assert not is_small(split.graph)


def test_a_graph_of_dynamic_sizes_is_not_small_and_an_empty_one_is() -> None:
    assert not is_small(traced(lambda x: x + 1, torch.zeros(2, 3), symbolic=True).graph)
    assert is_small(traced(lambda: [3]).graph)


def test_tensors_on_another_device_are_refused() -> None:
    options = read_options({"target": "cpu"}, None, "cpu")
    refuse_devices(traced(lambda x: x + 1, torch.zeros(2)), options)
    refuse_devices(traced(lambda: [3]), options)
    message = r"tensors on meta; target 'cpu' takes them on one cpu device"
    with pytest.raises(UnsupportedOpError, match=message):
        refuse_devices(traced(lambda x: x + 1, torch.zeros(2, device="meta")), options)
    with pytest.raises(UnsupportedOpError, match="tensors on cpu, meta; target"):
        refuse_devices(
            traced(lambda x, y: [x + 1, y + 1], torch.zeros(2), torch.zeros(2, device="meta")),
            options,
        )


def test_tensors_on_two_devices_of_the_kind_are_refused() -> None:
    graph = torch.fx.Graph()
    with FakeTensorMode():
        for number in range(2):
            node = graph.placeholder(f"x{number}")
            node.meta["val"] = torch.empty(2, device=f"cuda:{number}")
    graph.output([])
    options = dataclasses.replace(read_options(None, None, "cpu"), device="cuda")
    with pytest.raises(UnsupportedOpError, match="tensors on cuda:0, cuda:1; target"):
        refuse_devices(GraphModule(torch.nn.Module(), graph), options)


def test_a_graph_is_prepared_without_being_changed() -> None:
    module = traced(lambda x: [torch.rand_like(x).view(4) + 1, x], torch.zeros(2, 2))
    before = str(module.graph)
    parts, draws = prepared(module)
    assert str(module.graph) == before
    assert draws is not None
    assert len(draws.calls) == 1
    assert parts.program is not None
    assert parts.inputs == (1,)  # the random numbers; nothing of x is computed


def test_a_program_is_a_function_main_without_guards() -> None:
    parts, _ = prepared(traced(lambda x: [x + 1], torch.zeros(4, 2), symbolic=True))
    assert parts.program is not None
    check_text(
        str(module_of(parts.program).module_op),
        "CHECK: func.func @main(%arg0: !torch.vtensor<[?,?],f32>)\nCHECK: torch.aten.add",
    )


def unsupported(x: Tensor) -> list[Tensor]:
    return [torch.as_strided(x, (2,), (2,)) + 1]


def test_a_graph_that_cannot_be_compiled_runs_in_eager() -> None:
    module = traced(unsupported, torch.zeros(3, 2).T)
    options = read_options(None, None, "cpu")
    with pytest.warns(UserWarning, match=r"graph of 2 operators runs in eager, .* for 'cpu'"):
        called = compile_graph(module, (), options=options)
    x = torch.arange(6.0).reshape(3, 2).T
    given = [x]
    (actual,) = called(given)
    assert torch.equal(actual, unsupported(x)[0])
    assert given == []  # a boxed call takes its inputs out of the list


def test_without_fallback_it_is_an_error() -> None:
    module = traced(unsupported, torch.zeros(3, 2).T)
    with pytest.raises(UnsupportedOpError, match="does not lie row after row"):
        compile_graph(module, (), options=read_options({"fallback": False}, None, "cpu"))


def test_a_graph_that_computes_nothing_needs_no_compiler() -> None:
    options = read_options({"fallback": False, "cache_dir": None}, None, "cpu")
    called = compile_graph(traced(lambda x: [x, 3], torch.zeros(2)), (), options=options)
    x = torch.ones(2)
    assert called([x])[0] is x


def test_a_compiled_graph_gives_what_it_gave() -> None:
    def function(x: Tensor, y: Tensor) -> list[Any]:
        return [x * 2 + torch.rand_like(y), y]

    module = traced(function, torch.zeros(2), torch.zeros(2))
    options = read_options({"fallback": False}, None, "cpu")
    called = compile_graph(module, (), options=options)
    x, y = torch.randn(2), torch.ones(2)
    torch.manual_seed(5)
    expected = function(x, y)
    torch.manual_seed(5)
    actual = called([x, y])
    torch.testing.assert_close(actual[0], expected[0])
    assert actual[1] is y
