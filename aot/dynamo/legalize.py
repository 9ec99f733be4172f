"""Legalization of graphs of AOTAutograd, beyond that of all exported programs."""

from __future__ import annotations

import operator

import torch
from torch.fx import GraphModule, Node

from ..compat.decomposition_tables import decomposition_table
from ..compat.operators import OperatorBase
from ..decompositions.registry import Decomposition
from ..spec.errors import UnsupportedOpError
from ..spec.locations import location_of_node
from .graph import copy_of
from .random_numbers import dropout

aten = torch.ops.aten

DECOMPOSED_FIRST: dict[OperatorBase, Decomposition] = {
    aten.native_dropout.default: dropout,
    **{
        found: decomposition_table[found]
        for found in (
            aten.mish_backward.default,
            aten.silu_backward.default,
        )
    },
}
"""What AOTAutograd decomposes while it traces: operators with a kernel and a composite form, which
decompositions of an exported program do not reach, and dropout, whose mask torch draws."""


def without_strides(module: GraphModule) -> GraphModule:
    """Return a graph that does not rely on how its tensors lie in memory.

    Decompositions may give other layouts than those for which torch chose `view`.

    Args:
        module: A graph of AOTAutograd; it stays as it is.

    Raises:
        UnsupportedOpError: It takes apart the memory of a tensor that does not lie row after row.
    """
    copied = copy_of(module)
    for node in copied.graph.nodes:
        if node.target is aten.view.default:
            node.target = aten.reshape.default
        elif node.target in _STRIDED and not node.args[0].meta["val"].is_contiguous():
            raise UnsupportedOpError(
                f"{node.target} of a tensor that does not lie row after row",
                operators=(str(node.target),),
                location=location_of_node(node),
            )
    return copied


_STRIDED = (
    aten.as_strided.default,
    aten.as_strided_copy.default,
    aten.as_strided_scatter.default,
)


def with_whole_attention(module: GraphModule) -> GraphModule:
    """Return a graph in which attention is one operator where only its result is used.

    torch puts the kernel of its processor in place, which also gives what a backward pass needs.

    Args:
        module: A graph of AOTAutograd; it stays as it is.
    """
    if not any(_is_plain_attention(node) for node in module.graph.nodes):
        return module
    copied = copy_of(module)
    for node in [node for node in copied.graph.nodes if _is_plain_attention(node)]:
        query, key, value, *rest = node.args
        given = dict(zip(("dropout_p", "is_causal"), rest, strict=False)) | dict(node.kwargs)
        mask, scale = given.pop("attn_mask", None), given.pop("scale", None)
        with copied.graph.inserting_before(node):
            whole = copied.graph.call_function(
                aten.scaled_dot_product_attention.default,
                (query, key, value, mask, 0.0, given.get("is_causal", False)),
                {"scale": scale},
            )
        whole.meta = {**node.meta, "val": node.meta["val"][0]}
        for user in list(node.users):
            user.replace_all_uses_with(whole)
            copied.graph.erase_node(user)
        copied.graph.erase_node(node)
    return copied


def _is_plain_attention(node: Node) -> bool:
    if node.target is not aten._scaled_dot_product_flash_attention_for_cpu.default:
        return False
    return all(user.target is operator.getitem and user.args[1] == 0 for user in node.users)
