"""Insertion of nodes with their metadata."""

import torch

from pelton.aot.decompositions.rewrites.inserter import Inserter, fake_mode_of
from tests.aot.decompositions.rewritten import graph_of, targets

aten = torch.ops.aten


def setup():
    module = graph_of(lambda x: torch.relu(x) + 1, torch.ones(2, 3))
    nodes = list(module.graph.nodes)
    (anchor,) = module.graph.find_nodes(op="call_function", target=aten.add.Tensor)
    return module, anchor, Inserter(anchor, fake_mode_of(nodes))


def test_a_call_is_inserted_before_the_anchor_with_its_value():
    module, anchor, inserter = setup()
    node = inserter.call(aten.sum.dim_IntList, anchor.args[0], [1])
    assert targets(module) == [aten.relu.default, aten.sum.dim_IntList, aten.add.Tensor]
    assert tuple(node.meta["val"].shape) == (2,)
    assert tuple(node.meta["tensor_meta"].shape) == (2,)
    assert node.meta["stack_trace"] == anchor.meta["stack_trace"]


def test_a_value_that_is_given_is_not_evaluated():
    _, anchor, inserter = setup()
    node = inserter.call(aten.sym_size.int, anchor.args[0], 0, value=2)
    assert node.meta["val"] == 2 and "tensor_meta" not in node.meta


def test_the_anchor_is_replaced_in_place():
    module, anchor, inserter = setup()
    name = anchor.name
    inserter.become(aten.mul.Tensor, anchor.args[0], 3.0)
    module.recompile()
    assert anchor.name == name and anchor.target is aten.mul.Tensor
    torch.testing.assert_close(module(torch.ones(2, 3))[0], torch.full((2, 3), 3.0))


def test_values_of_no_mode_have_none():
    graph = torch.fx.symbolic_trace(torch.nn.ReLU()).graph
    assert fake_mode_of(list(graph.nodes)) is None
