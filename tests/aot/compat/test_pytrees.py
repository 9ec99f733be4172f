"""Contracts of torch's pytrees."""

from __future__ import annotations

import json

import torch

from pelton.aot.compat.pytrees import (
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
from tests.contracts import contract

TREE = {"b": [1, (2.0, None)], "a": "x"}
PYTREE = "torch.utils._pytree"


@contract(f"{PYTREE}.tree_flatten, tree_unflatten", breaks="arguments of procedures and programs")
def test_tree_is_flattened_and_put_together_again() -> None:
    leaves, spec = tree_flatten(TREE)
    assert leaves == [1, 2.0, None, "x"], "dictionaries keep their order, None is a leaf"
    assert isinstance(spec, TreeSpec)
    assert tree_unflatten(leaves, spec) == TREE
    assert tree_leaves(TREE) == leaves


@contract(f"{PYTREE}.TreeSpec", breaks="call specifications of FxPrograms")
def test_structures_are_equal_by_their_containers() -> None:
    assert tree_structure(TREE) == tree_structure({"b": [0, (0, 0)], "a": 0})
    assert tree_structure([1]) != tree_structure((1,))
    assert tree_structure(TREE).num_leaves == 4


@contract(f"{PYTREE}.tree_flatten_with_path", breaks="names of globals of export_global_tree")
def test_paths_name_keys_and_indices() -> None:
    (first, leaf), *_ = tree_flatten_with_path(TREE)[0]
    assert (first[0].key, first[1].idx, leaf) == ("b", 0, 1)  # type: ignore[attr-defined]


@contract(f"{PYTREE}.tree_map, tree_map_only", breaks="decompositions and values of graphs")
def test_leaves_are_mapped_in_their_containers() -> None:
    assert tree_map(str, (1, [2])) == ("1", ["2"])
    assert tree_map_only(int, lambda n: n + 1, [1, 2.0, "x"]) == [2, 2.0, "x"]
    size = torch.Size([2])
    assert tree_leaves([size]) == [2], "sizes are containers of numbers"


@contract(f"{PYTREE}.treespec_dumps", breaks="torch.args_schema and FxPrograms on disk")
def test_structure_is_written_as_json() -> None:
    version, written = json.loads(treespec_dumps(tree_structure(([1], {"k": 2}))))
    assert version == 1
    assert written["type"] == "builtins.tuple"
    assert [child["type"] for child in written["children_spec"]] == [
        "builtins.list",
        "builtins.dict",
    ]
