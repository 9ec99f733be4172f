"""Symbolic sizes with one possible value, after the rewrite."""

import torch

from pelton.aot.decompositions.rewrites.constant_sizes import (
    fix_constant_inputs,
    fix_constant_sizes,
    has_constant_inputs,
)
from pelton.aot.decompositions.rewrites.inserter import fake_mode_of
from tests.aot.decompositions.rewritten import graph_of

N = torch.export.Dim("n", min=2, max=64)


def sizes_of(module):
    values = [node.meta["val"] for node in module.graph.nodes if node.op == "call_function"]
    return [tuple(value.shape) for value in values if isinstance(value, torch.Tensor)]


def fixed(function):
    module = graph_of(function, torch.ones(5), dynamic=({0: N},))
    before = sizes_of(module)
    fix_constant_sizes(module.graph, fake_mode_of(list(module.graph.nodes)))
    return before, sizes_of(module), module


def test_a_size_of_one_possible_value_is_that_value():
    before, after, module = fixed(lambda x: torch.ones(torch.sym_max(x.shape[0], 64)) * 2)
    assert any(isinstance(size, torch.SymInt) for shape in before for size in shape)
    assert after[-1] == (64,)
    node = next(node for node in reversed(module.graph.nodes) if node.op == "call_function")
    assert tuple(node.meta["tensor_meta"].shape) == (64,)


def test_sizes_that_vary_stay_symbolic():
    _, after, _ = fixed(lambda x: torch.cat([x, x]))
    assert isinstance(after[-1][0], torch.SymInt)


def test_graphs_without_fake_values_are_left_alone():
    module = graph_of(lambda x: x + 1, torch.ones(2))
    text = str(module.graph)
    fix_constant_sizes(module.graph, None)
    assert str(module.graph) == text


def test_a_size_of_an_input_that_the_trace_fixed_is_a_number_and_keeps_its_layout():
    auto = {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}
    graph = graph_of(lambda x: x + torch.ones(4), torch.ones(4, 5).t(), dynamic=(auto,)).graph
    assert has_constant_inputs(graph)
    fix_constant_inputs(graph)
    assert not has_constant_inputs(graph)
    (node,) = graph.find_nodes(op="placeholder")
    rows, columns = node.meta["val"].shape
    assert isinstance(rows, torch.SymInt)
    assert type(columns) is int
    assert columns == 4
    assert node.meta["val"].stride(0) == 1
    assert type(node.meta["tensor_meta"].shape[1]) is int
