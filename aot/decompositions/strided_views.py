"""Strided views, taken from the tensor that owns their memory.

The offset of `as_strided` counts from the start of the memory, not of the tensor that it is called
on, and its elements may lie outside of that tensor. Compiled tensors have no memory in common, so
the view is taken from the tensor whose memory it is.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node, map_arg

from ..compat.fake_tensors import storage_key
from ..compat.operators import OpOverload, schema_of
from ..spec.errors import UnsupportedOpError
from ..spec.locations import location_of_node
from ..spec.sizes import is_static

aten = torch.ops.aten

_VIEWS = (aten.as_strided.default, aten.as_strided_copy.default, aten.as_strided_.default)
_SCATTER = aten.as_strided_scatter.default


def has_strided_views(module: GraphModule) -> bool:
    """Return whether a graph or one of its subgraphs has a strided view."""
    return any(
        node.target in _VIEWS or node.target is _SCATTER
        for graph in _graphs(module)
        for node in graph.nodes
    )


def take_from_owners(module: GraphModule) -> None:
    """Take each strided view from the tensor that owns the memory, with the offset within that.

    Args:
        module: A graph with values in its metadata. Subgraphs stay as they are: views are refused
            there that would have to change.

    Raises:
        UnsupportedOpError: Where a view lies within its owner is not known, or not within it.
    """
    for graph in _graphs(module):
        values = _values(graph)
        owners: dict[int, Node] = {}
        for node, value in values.items():
            if isinstance(value, Tensor):
                owners.setdefault(storage_key(value), node)
        for node in graph.nodes:
            if node.target not in _VIEWS and node.target is not _SCATTER:
                continue
            view = _view(node, values, owners)
            if graph is module.graph:
                view.replace(node)
            elif _place(view) != _place(_as_called(node)):
                raise _error(node, "within a branch or loop, of a part of another tensor")
    module.recompile()


@dataclass(frozen=True)
class _View:
    """A strided view of a tensor, with the offset within that."""

    tensor: Node
    size: Sequence[Any]
    stride: Sequence[Any]
    offset: Any

    def replace(self, node: Node) -> None:
        """Make a call take this view."""
        source = node.args[1:2] if node.target is _SCATTER else ()
        node.args = (self.tensor, *source, self.size, self.stride, self.offset)
        node.kwargs = {}
        if node.target is aten.as_strided_.default:
            node.target = aten.as_strided.default


def _as_called(node: Node) -> _View:
    """Return the view that a call states, with None for an offset that it does not."""
    assert isinstance(node.target, OpOverload)
    names = [argument.name for argument in schema_of(node.target).arguments]
    given: dict[str, Any] = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    return _View(given["self"], given["size"], given["stride"], given.get("storage_offset"))


def _place(view: _View) -> tuple[Node, Any]:
    return view.tensor, 0 if view.offset is None else view.offset


def _graphs(module: GraphModule) -> list[Graph]:
    return [part.graph for part in module.modules() if isinstance(part, GraphModule)]


def _values(graph: Graph) -> dict[Node, Any]:
    """Return the value of each node, where views share the memory of what they are a view of.

    The values of a graph that was read from a file share none, so views are made again.
    """
    values: dict[Node, Any] = {}
    for node in graph.nodes:
        values[node] = node.meta.get("val")
        if node.op == "call_function" and _may_alias(node.target):
            args, kwargs = map_arg((node.args, node.kwargs), lambda n: _alias(values[n]))
            values[node] = node.target(*args, **kwargs)
    return values


def _may_alias(target: Any) -> bool:
    if target is operator.getitem:
        return True
    if not isinstance(target, OpOverload):
        return False
    results = schema_of(target).returns
    return bool(results) and results[0].alias_info is not None


def _alias(value: Any) -> Any:
    """Return a tensor of the same memory, whose sizes and strides may be changed in place."""
    return value.detach() if isinstance(value, Tensor) else value


def _view(node: Node, values: dict[Node, Any], owners: dict[int, Node]) -> _View:
    """Return the view that a call takes, of the tensor that owns the memory.

    Raises:
        UnsupportedOpError: Where it lies is not known, or not within that tensor.
    """
    called = _as_called(node)
    source = values[called.tensor]
    start = source.storage_offset() if called.offset is None else called.offset
    owner = owners[storage_key(source)]
    relative = node.target is _SCATTER or (called.offset is None and not is_static(start))
    if relative:
        owner = called.tensor
    memory = values[owner]
    if memory.dtype != source.dtype or memory.is_conj() != source.is_conj():
        raise _error(node, f"of a view of a tensor of other elements ({memory.dtype})")
    order = _order(memory) if owner.op == "call_function" else None
    if order is not None and node.target is not _SCATTER:
        with node.graph.inserting_before(node):
            owner = node.graph.call_function(aten.permute.default, (owner, order))
        owner.meta = {**node.meta, "val": memory.permute(order)}
    elif not memory.is_contiguous():
        raise _error(node, "of a tensor that does not lie row after row")
    begin = memory.storage_offset()
    if called.offset is None and relative:
        start = 0
    elif is_static(start) and is_static(begin):
        start -= begin
    elif not is_static(begin) or begin != 0:
        raise _error(node, "of a tensor whose place in memory varies with a size")
    view = _View(owner, called.size, called.stride, start)
    if is_static(start):
        _check_range(node, view, memory)
    return view


def _order(tensor: Tensor) -> list[int] | None:
    """Return the order of dimensions in which a tensor lies row after row; None: as they are."""
    if tensor.is_contiguous() or not all(is_static(step) for step in tensor.stride()):
        return None
    order = sorted(range(tensor.dim()), key=tensor.stride().__getitem__, reverse=True)
    return order if tensor.permute(order).is_contiguous() else None


def _check_range(node: Node, view: _View, memory: Tensor) -> None:
    """Refuse a view of elements outside of the tensor; dynamic sizes are checked at each call."""
    assert isinstance(view.offset, int)
    if 0 in view.size:
        return
    if view.offset < 0:
        raise _error(node, f"that begins {-view.offset} elements before the tensor")
    if all(is_static(number) for number in (*view.size, *view.stride, *memory.shape)):
        steps = zip(view.size, view.stride, strict=True)
        last = view.offset + sum((count - 1) * step for count, step in steps)
        if last >= memory.numel():
            raise _error(node, f"whose last element is number {last} of {memory.numel()}")


def _error(node: Node, what: str) -> UnsupportedOpError:
    return UnsupportedOpError(
        f"{node.target} {what}: where its elements are in the compiled program is not known; use "
        "slices, reshape or index_select instead",
        operators=(str(node.target),),
        location=location_of_node(node),
    )
