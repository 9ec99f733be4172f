"""Runtime asserts of a graph, which the compiler refuses."""

from __future__ import annotations

import torch
from torch.fx import Graph

from ...compat.symbolic import check

aten = torch.ops.aten

CHECKS = (
    aten._assert_async.default,
    aten._assert_async.msg,
    aten._assert_scalar.default,
    aten._assert_tensor_metadata.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
    check,
)
"""Targets of runtime asserts; ranges of sizes are checked at the call, from the signature."""


def drop_checks(graph: Graph) -> None:
    """Remove runtime asserts, and the nodes that only they use."""
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and node.target in CHECKS:
            graph.erase_node(node)
    graph.eliminate_dead_code()
