"""Empty tensors, replaced by constants: the compiler divides by zero to compute them."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from ...compat.fake_tensors import FakeTensor, tensor_metadata
from ...compat.operators import OpOverload, schema_of
from ...spec.sizes import is_static

aten = torch.ops.aten

_PRODUCTS = (
    aten.mm.default, aten.bmm.default, aten.matmul.default, aten.mv.default, aten.dot.default,
    aten.vdot.default,
)  # fmt: skip


def fill_empties(graph: Graph) -> None:
    """Replace operators with empty results, and products over empty dimensions, by constants.

    Args:
        graph: A graph of functional operators, with values in its metadata.
    """
    for node in list(graph.nodes):
        if node.op == "call_function" and _is_trivial(node):
            value = node.meta["val"]
            node.target = aten.full.default
            node.args = (list(value.shape), _zero(value.dtype))
            node.kwargs = {"dtype": value.dtype, "device": value.device, "pin_memory": False}
            with value.fake_mode:
                node.meta["val"] = aten.full.default(*node.args, **node.kwargs)
            node.meta["tensor_meta"] = tensor_metadata(node.meta["val"])
    graph.eliminate_dead_code()


def _is_trivial(node: Node) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, FakeTensor) or not _is_fixed(value):
        return False
    functional = node.target is operator.getitem or (
        isinstance(node.target, OpOverload) and not schema_of(node.target).is_mutable
    )
    if not functional or node.target is aten.full.default:
        return False
    return value.numel() == 0 or (node.target in _PRODUCTS and _contracts_empty(node))


def _contracts_empty(node: Node) -> bool:
    return any(
        isinstance(argument, Node) and 0 in _sizes(argument.meta.get("val"))
        for argument in node.args
    )


def _sizes(value: Any) -> list[int]:
    shape = value.shape if isinstance(value, torch.Tensor) else ()
    return [size for size in shape if is_static(size)]


def _is_fixed(value: torch.Tensor) -> bool:
    return all(is_static(size) for size in value.shape)


def _zero(dtype: torch.dtype) -> Any:
    if dtype is torch.bool:
        return False
    return 0.0 if dtype.is_floating_point or dtype.is_complex else 0
