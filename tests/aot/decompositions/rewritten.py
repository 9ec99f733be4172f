"""Graphs of exported functions before and after the rewrites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule

from pelton.aot.compat.symbolic import backed_size_oblivious
from pelton.aot.decompositions.rewrites import rewrite_graph


def graph_of(function: Callable[..., Any], *args: torch.Tensor, dynamic: Any = None) -> GraphModule:
    """Return the graph of a function without parameters, as torch.export gives it.

    Args:
        function: The function; the results of its graph are in a tuple.
        args: Example arguments.
        dynamic: The dynamic dimensions of each argument.
    """

    class Model(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> Any:
            return function(*args)

    shapes = None if dynamic is None else (tuple(dynamic),)
    with backed_size_oblivious(True):
        exported = torch.export.export(Model(), args, dynamic_shapes=shapes, strict=False)
    return exported.graph_module


def rewritten(
    function: Callable[..., Any], *args: torch.Tensor, dynamic: Any = None
) -> GraphModule:
    """Return the rewritten graph of a function; parameters as for `graph_of`."""
    module = graph_of(function, *args, dynamic=dynamic)
    rewrite_graph(module)
    return module


def targets(module: GraphModule) -> list[Any]:
    """Return what the graph of a module calls, in order."""
    return [node.target for node in module.graph.nodes if node.op == "call_function"]
