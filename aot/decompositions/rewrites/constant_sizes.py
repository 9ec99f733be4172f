"""Symbolic sizes with only one possible value, replaced by that value.

The compiler assumes in broadcasts that a dynamic size is not 1: adding a tensor of size
`1 - max(0, 1 - n)` gave wrong results. torch proves such sizes constant from ranges and guards.
An input's size that a trace has found to be one number (`Dim.AUTO`) is still a symbol in what
torch.export gives, of which one part of the compiler would then know the number, and another not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ...compat.fake_tensors import FakeTensor, FakeTensorMode, tensor_metadata
from ...compat.pytrees import tree_map
from ...compat.symbolic import bound_sympy
from ...spec.sizes import is_static


def has_constant_inputs(graph: Graph) -> bool:
    """Return whether an input has a symbolic size that the trace found to be a number."""
    return any(_is_number(size) for node in _inputs(graph) for size in node.meta["val"].shape)


def fix_constant_inputs(graph: Graph) -> None:
    """Replace the sizes of inputs that the trace found to be numbers by those."""
    for node in _inputs(graph):
        value = node.meta["val"]
        if any(_is_number(size) for size in value.shape):
            sizes, strides = map(_numbers, (value.shape, value.stride()))
            with value.fake_mode:
                node.meta["val"] = value.new_empty_strided(sizes, strides)
            node.meta["tensor_meta"] = tensor_metadata(node.meta["val"])


def _inputs(graph: Graph) -> list[Node]:
    """Return the placeholders of tensors."""
    found = graph.find_nodes(op="placeholder")
    return [node for node in found if isinstance(node.meta.get("val"), FakeTensor)]


def _numbers(sizes: Iterable[Any]) -> list[Any]:
    return [int(size) if _is_number(size) else size for size in sizes]


def _is_number(size: Any) -> bool:
    return not is_static(size) and bool(size.node.expr.is_number)


def fix_constant_sizes(graph: Graph, fake_mode: FakeTensorMode | None) -> None:
    """Replace symbolic sizes that have only one possible value in the metadata of a graph."""
    if fake_mode is None:
        return
    for node in graph.nodes:
        if node.op == "call_function" and "val" in node.meta:
            node.meta["val"] = tree_map(lambda value: _fixed(value, fake_mode), node.meta["val"])
            if isinstance(node.meta["val"], Tensor):
                node.meta["tensor_meta"] = tensor_metadata(node.meta["val"])


def _fixed(value: Any, fake_mode: FakeTensorMode) -> Any:
    if not isinstance(value, Tensor) or all(is_static(size) for size in value.shape):
        return value
    sizes = [_number(size) for size in value.shape]
    if all(now is before for now, before in zip(sizes, value.shape, strict=True)):
        return value
    with fake_mode:
        return value.new_empty(sizes)


def _number(size: Any) -> Any:
    """Return the only possible value of a size, or the size if there are several."""
    if is_static(size) or size.node.expr.is_Symbol:
        return size
    if statically_known_true(size == 1):
        return 1
    found = bound_sympy(size.node.expr, size.node.shape_env.var_to_range)
    single = found.lower == found.upper and found.lower.is_Integer
    return int(found.lower) if single else size
