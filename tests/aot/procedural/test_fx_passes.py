"""Passes by name: the graph of a function without changes in place."""

from __future__ import annotations

import torch

from pelton.aot.procedural import fx_passes
from tests.programs import assert_same


def test_functorch_functionalize_gives_a_functional_graph() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.view(4)
        y.add_(1)
        return y * 2

    graph = fx_passes.functorch_functionalize(function, torch.zeros(2, 2))
    names = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert not any("add_" in name for name in names)
    x = torch.ones(2, 2)
    assert_same(graph(x.clone()), torch.full((4,), 4.0))


def test_passes_are_found_by_name() -> None:
    assert fx_passes.PASSES["functorch_functionalize"] is fx_passes.functorch_functionalize
