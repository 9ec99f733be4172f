"""Passes over torch functions, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch.func import functionalize
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx


def functorch_functionalize(gm_callable: Callable[..., Any], *args: Any) -> GraphModule:
    """Return the graph of a function without in-place operations.

    In-place changes of arguments become a final `copy_`; those of other tensors become new values.

    Args:
        gm_callable: A function of tensors, or a graph module.
        args: Example arguments.

    Example:
        >>> def add_one(x):
        ...     y = x.clone()
        ...     return y.add_(1)
        >>> graph = functorch_functionalize(add_one, torch.ones(2)).graph
        >>> [str(node.target) for node in graph.nodes if node.op == "call_function"]
        ['aten.clone.default', 'aten.add.Tensor']
    """
    functional = functionalize(gm_callable, remove="mutations_and_views")
    with torch.no_grad():
        graph: GraphModule = make_fx(functional)(*args)
    return graph


PASSES: Mapping[str, Callable[..., GraphModule]] = MappingProxyType(
    {"functorch_functionalize": functorch_functionalize}
)
"""The passes that a `jittable` may name."""
