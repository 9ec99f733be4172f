"""A torch.fx graph under construction, with captures from the graphs around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

KEPT = "pelton.kept"
"""Mark of nodes that stay although nothing uses them."""


class Scope:
    """The graph of a function, branch or loop body.

    Branches and loops of torch see nothing of the graph around them: what they use is passed. A
    value from outside becomes an input the first time that it is used.

    Args:
        parent: The scope around it.

    Attributes:
        graph: The graph.
        attributes: The modules and tensors that it refers to, by name.
        captured: The input that stands for each value of the parent's graph.
    """

    def __init__(self, parent: Scope | None = None) -> None:
        self.graph = Graph()
        self.parent = parent
        self.attributes: dict[str, Any] = {}
        self.captured: dict[Node, Node] = {}
        self._last_placeholder: Node | None = None

    def placeholder(self, name: str, dtype: torch.dtype | None) -> Node:
        """Add an input behind the others; None: a Python number."""
        place = (
            self.graph.inserting_before()
            if self._last_placeholder is None
            else self.graph.inserting_after(self._last_placeholder)
        )
        with place:
            node = self.graph.placeholder(name)
        self._last_placeholder = node
        return typed(node, dtype)

    def order(self, placeholders: Sequence[Node]) -> None:
        """Put the inputs in an order."""
        for node in reversed(placeholders):
            next(iter(self.graph.nodes)).prepend(node)

    def use(self, node: Node) -> Node:
        """Return what stands for a value in this graph."""
        if node.graph is self.graph:
            return node
        assert self.parent is not None, f"{node} is used outside of its branch or loop"
        outer = self.parent.use(node)
        if outer not in self.captured:
            name = f"outer_{len(self.captured)}"
            self.captured[outer] = self.placeholder(name, dtype_of(outer))
        return self.captured[outer]

    def call(self, target: Callable[..., Any], args: Any, kwargs: Any) -> Node:
        """Add a call; values of outer graphs among the arguments become inputs.

        Args:
            target: The function to call.
            args: Its positional arguments, with nodes.
            kwargs: Its keyword arguments, with nodes.
        """
        return self.graph.call_function(target, map_arg(args, self.use), map_arg(kwargs, self.use))

    def attribute(self, name: str, value: Any, dtype: torch.dtype | None = None) -> Node:
        """Add a reference to a tensor or module that the graph owns.

        Args:
            name: The name of the attribute.
            value: The tensor or module.
            dtype: The element type of a tensor.
        """
        self.attributes[name] = value
        return typed(self.graph.get_attr(name), dtype)

    def finish(self, outputs: Any) -> GraphModule:
        """End the graph with its results; return it as a module."""
        self.graph.output(map_arg(outputs, self.use))
        self.graph.eliminate_dead_code(lambda node: node.is_impure() or KEPT in node.meta)
        self.graph.lint()
        return GraphModule(self.attributes, self.graph)


def typed(node: Node, dtype: torch.dtype | None) -> Node:
    """Note the element type of a tensor on its node; None: it is a Python number, or a list."""
    if dtype is not None:
        node.meta["dtype"] = dtype
    return node


def dtype_of(value: Any) -> torch.dtype | None:
    """Return the element type of a value that is a tensor, else None."""
    return value.meta.get("dtype") if isinstance(value, Node) else None


def nodes_in(values: Iterable[Any]) -> list[Node]:
    """Return the nodes in nested values."""
    found: list[Node] = []
    map_arg(tuple(values), found.append)  # type: ignore[arg-type]  # its results are not used
    return found
