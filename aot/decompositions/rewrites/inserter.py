"""Inserting nodes into an exported graph with the metadata that the importer reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.fx import Node, map_arg

from ...compat.fake_tensors import FakeTensorMode, detect_fake_mode, tensor_metadata

Target = Callable[..., Any]


class Inserter:
    """Inserts nodes before one node, and rewrites that node itself.

    The node keeps its name and place, so that graph signatures which name it stay right.

    Args:
        anchor: The node to insert before.
        fake_mode: The mode that the graph's values belong to.
    """

    def __init__(self, anchor: Node, fake_mode: FakeTensorMode | None) -> None:
        self.anchor = anchor
        self._fake_mode = fake_mode

    def call(self, target: Target, *args: Any, value: Any = None, **kwargs: Any) -> Node:
        """Insert a call and return its node.

        Args:
            target: An operator overload or a function of symbolic numbers.
            value: What the call returns, if running `target` can't tell.
        """
        graph = self.anchor.graph
        with graph.inserting_before(self.anchor):
            node = graph.call_function(target, args, kwargs)
        node.meta = dict(self.anchor.meta)
        node.meta["val"] = self._evaluate(target, args, kwargs) if value is None else value
        node.meta.pop("tensor_meta", None)
        if isinstance(node.meta["val"], torch.Tensor):
            node.meta["tensor_meta"] = tensor_metadata(node.meta["val"])
        return node

    def become(self, target: Target, *args: Any, **kwargs: Any) -> None:
        """Turn the anchor into another call that has the same value."""
        self.anchor.target = target
        self.anchor.args = args
        self.anchor.kwargs = kwargs

    def _evaluate(self, target: Target, args: Any, kwargs: Any) -> Any:
        values = map_arg((args, kwargs), lambda node: node.meta["val"])
        mode = self._fake_mode or nullcontext()
        with mode:
            return target(*values[0], **values[1])


def fake_mode_of(nodes: list[Node]) -> FakeTensorMode | None:
    """Return the fake mode that the values of a graph belong to, if they belong to one."""
    values = [node.meta["val"] for node in nodes if isinstance(node.meta.get("val"), torch.Tensor)]
    mode: FakeTensorMode | None = detect_fake_mode(values)
    return mode
