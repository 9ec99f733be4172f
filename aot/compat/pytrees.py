"""Pytrees of torch, which hold the arguments and results of traced programs."""

from __future__ import annotations

from torch.utils._pytree import (
    TreeSpec,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_map_only,
    tree_structure,
    tree_unflatten,
    treespec_dumps,
)

__all__ = [
    "TreeSpec",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_map",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
]
