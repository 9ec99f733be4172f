"""Alias analysis of graph results: the inputs whose memory a result may share."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch

from ...compat.operators import HigherOrderOperator, OpOverload, schema_of

_COPIES = (
    "_to_copy", "alias", "clone", "contiguous", "copy", "detach", "flatten", "reshape", "to",
)  # fmt: skip
"""Operators whose result has the elements of the first operand: a compiler may elide the copy."""

_CHANGES = ("scatter", "index_put", "index_copy", "index_fill", "index_add", "masked_fill")
"""Parts of the names of operators that update the first operand, perhaps in place."""


def aliased_inputs(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """Yield the inputs of a graph whose memory a node may share, through views and updates.

    Example:
        >>> class Head(torch.nn.Module):
        ...     def forward(self, x, y):
        ...         return x[0], x + y
        >>> graph = torch.export.export(Head(), (torch.ones(2), torch.ones(2))).graph
        >>> first, total = graph.output_node().args[0]
        >>> list(aliased_inputs(first)), list(aliased_inputs(total))
        ([x], [])
    """
    waiting, seen = [node], {node}
    while waiting:
        node = waiting.pop()
        if node.op == "placeholder" or node.op == "get_attr":
            yield node
        elif node.op == "call_function" and _may_be_operand(node.target):
            operands = node.all_input_nodes[: None if _is_any(node.target) else 1]
            waiting.extend(operand for operand in reversed(operands) if operand not in seen)
            seen.update(operands)


def _is_any(target: Any) -> bool:
    return isinstance(target, HigherOrderOperator) or "cat" in str(target)


def _may_be_operand(target: Any) -> bool:
    if target is operator.getitem or _is_any(target):
        return True
    if not isinstance(target, OpOverload):
        return False
    name = schema_of(target).name.partition("::")[2]
    return target.is_view or name in _COPIES or any(part in name for part in _CHANGES)
