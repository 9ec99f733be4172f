"""Graphs under construction: inputs in order, captures of outer values, dead code."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.raising.fx.scope import KEPT, Scope, dtype_of, nodes_in, typed

aten = torch.ops.aten


def test_a_graph_is_finished_as_a_module() -> None:
    scope = Scope()
    x = scope.placeholder("x", torch.float32)
    module = scope.finish((scope.call(aten.neg.default, (x,), {}),))
    assert module(torch.tensor([1.0, -2.0]))[0].tolist() == [-1.0, 2.0]


def test_inputs_stand_in_the_order_in_which_they_were_added() -> None:
    scope = Scope()
    first = scope.placeholder("a", None)
    scope.call(aten.relu.default, (first,), {})
    scope.placeholder("b", None)
    assert [n.name for n in scope.graph.nodes if n.op == "placeholder"] == ["a", "b"]
    assert [n.op for n in scope.graph.nodes] == ["placeholder", "placeholder", "call_function"]


def test_inputs_are_put_in_another_order() -> None:
    scope = Scope()
    a, b = scope.placeholder("a", None), scope.placeholder("b", None)
    scope.order([b, a])
    assert [node.name for node in scope.graph.nodes] == ["b", "a"]


def test_a_value_from_outside_is_captured_once() -> None:
    outer = Scope()
    x = outer.placeholder("x", torch.int64)
    inner = Scope(outer)
    captured = inner.use(x)
    assert inner.use(x) is captured
    assert dtype_of(captured) is torch.int64
    assert inner.captured == {x: captured}


def test_a_capture_goes_through_every_scope_between() -> None:
    outermost = Scope()
    x = outermost.placeholder("x", None)
    middle = Scope(outermost)
    innermost = Scope(middle)
    innermost.call(aten.neg.default, (x,), {})
    (passed,) = middle.captured.values()
    assert list(innermost.captured) == [passed]


def test_a_value_of_another_graph_is_a_fault_of_ours() -> None:
    foreign = Scope().placeholder("x", None)
    with pytest.raises(AssertionError, match="used outside of its branch or loop"):
        Scope().use(foreign)


def test_dead_code_is_eliminated_unless_it_is_marked() -> None:
    scope = Scope()
    x = scope.placeholder("x", None)
    scope.call(aten.neg.default, (x,), {})
    marked = scope.call(aten.abs.default, (x,), {})
    marked.meta[KEPT] = True
    module = scope.finish((x,))
    targets = [node.target for node in module.graph.nodes if node.op == "call_function"]
    assert targets == [aten.abs.default]


def test_an_attribute_is_part_of_the_module() -> None:
    scope = Scope()
    weight = scope.attribute("weight", torch.ones(2), torch.float32)
    assert dtype_of(weight) is torch.float32
    assert scope.finish((weight,))()[0].tolist() == [1.0, 1.0]


def test_values_without_a_dtype_are_no_tensors() -> None:
    node = typed(Scope().placeholder("n", None), None)
    assert dtype_of(node) is None
    assert dtype_of(3) is None


def test_nodes_are_found_in_nested_values() -> None:
    scope = Scope()
    a, b = scope.placeholder("a", None), scope.placeholder("b", None)
    assert nodes_in([a, [1, (b, "x")], {"k": a}]) == [a, b, a]
