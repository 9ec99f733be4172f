"""Insertion of nodes into an exported graph, with the metadata that the importer reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch.fx import Node, map_arg

from ...compat.fake_tensors import FakeTensorMode, detect_fake_mode, tensor_metadata

Target = Callable[..., Any]


class Inserter:
    """Inserts nodes before an anchor node, and rewrites the anchor in place.

    The anchor is not renamed or moved, so that graph signatures that name it remain valid.

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
            value: The value of the call, if `target` cannot be evaluated on fake tensors.
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
        """Replace the call of the anchor by another of the same value."""
        self.anchor.target = target
        self.anchor.args = args
        self.anchor.kwargs = kwargs

    def _evaluate(self, target: Target, args: Any, kwargs: Any) -> Any:
        values = map_arg((args, kwargs), lambda node: node.meta["val"])
        mode = self._fake_mode or nullcontext()
        with mode:
            return target(*values[0], **values[1])


def fake_mode_of(nodes: list[Node]) -> FakeTensorMode | None:
    """Return the fake mode of the values of a graph; None if they have none."""
    values = [node.meta["val"] for node in nodes if isinstance(node.meta.get("val"), torch.Tensor)]
    mode: FakeTensorMode | None = detect_fake_mode(values)
    return mode
