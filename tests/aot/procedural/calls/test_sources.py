"""Alias analysis of graph results: through views, copies and updates, and not through others."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph, Node

from pelton.aot.procedural.calls.sources import aliased_inputs

aten = torch.ops.aten


def names(make: Callable[[Graph, Node, Node], Node]) -> list[str]:
    """Return the inputs that may share memory with the result of a graph of `x` and `y`."""
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    return [node.name for node in aliased_inputs(make(graph, x, y))]


@pytest.mark.parametrize(
    ("target", "args"),
    [
        (aten.select.int, (0, 0)),
        (aten.view.default, ([-1],)),
        (aten.permute.default, ([0],)),
        (aten.reshape.default, ([-1],)),
        (aten.clone.default, ()),
        (aten.detach.default, ()),
        (aten._to_copy.default, ()),
        (aten.contiguous.default, ()),
    ],
    ids=str,
)
def test_a_view_or_copy_may_share_the_memory_of_its_operand(target: Any, args: Any) -> None:
    assert names(lambda graph, x, _: graph.call_function(target, (x, *args))) == ["x"]


@pytest.mark.parametrize(
    "target", [aten.copy.default, aten.index_put.default, aten.masked_fill.Tensor], ids=str
)
def test_an_update_shares_the_memory_of_what_it_updates_only(target: Any) -> None:
    def updated(graph: Graph, x: Node, y: Node) -> Node:
        shifted = graph.call_function(aten.neg.default, (y,))
        return graph.call_function(target, (x, shifted, y))

    assert names(updated) == ["x"]


@pytest.mark.parametrize(
    "target", [aten.add.Tensor, aten.mm.default, aten.where.self, aten.relu.default], ids=str
)
def test_a_computed_result_shares_no_memory(target: Any) -> None:
    assert names(lambda graph, x, y: graph.call_function(target, (x, y))) == []


def test_a_concatenation_may_be_any_of_its_operands() -> None:
    def joined(graph: Graph, x: Node, y: Node) -> Node:
        fresh = graph.call_function(aten.neg.default, (x,))
        return graph.call_function(aten.cat.default, ([y, fresh, x],))

    assert names(joined) == ["y", "x"]


def test_a_branch_may_return_any_of_its_operands() -> None:
    def chosen(graph: Graph, x: Node, y: Node) -> Node:
        cond = graph.call_function(torch.ops.higher_order.cond, (x, None, None, [y]))
        return graph.call_function(operator.getitem, (cond, 0))

    assert names(chosen) == ["x", "y"]


def test_the_parts_of_a_split_share_its_memory() -> None:
    def part(graph: Graph, x: Node, _: Node) -> Node:
        return graph.call_function(
            operator.getitem, (graph.call_function(aten.split.Tensor, (x, 1)), 1)
        )

    assert names(part) == ["x"]


def test_an_input_and_an_attribute_are_their_own_memory() -> None:
    owner = torch.nn.Linear(1, 1)
    graph = Graph(owner)
    x = graph.placeholder("x")
    assert list(aliased_inputs(x)) == [x]
    weight = graph.get_attr("weight")
    assert list(aliased_inputs(graph.call_function(aten.alias.default, (weight,)))) == [weight]


def test_a_python_function_shares_no_memory() -> None:
    assert names(lambda graph, x, y: graph.call_function(operator.add, (x, y))) == []


def test_an_input_that_is_reached_twice_is_told_once() -> None:
    def doubled(graph: Graph, x: Node, _: Node) -> Node:
        for _depth in range(40):
            view = graph.call_function(aten.alias.default, (x,))
            x = graph.call_function(aten.cat.default, ([x, view],))
        return x

    assert names(doubled) == ["x"]


def test_the_length_of_a_chain_of_views_is_not_limited() -> None:
    def chained(graph: Graph, x: Node, _: Node) -> Node:
        for _depth in range(3000):
            x = graph.call_function(aten.alias.default, (x,))
        return x

    assert names(chained) == ["x"]
