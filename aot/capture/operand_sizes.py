"""Sizes of operands that eager compares and torch's traces do not: writes at indices and to views.

The shape functions of `index_put`, `index_add`, `slice_scatter` and their like take any sizes of
what is written (torch 2.13): a program would read and write beside its buffers for sizes that eager
refuses. Each relation becomes a guard here, and so a constraint that is checked at each call. Where
eager broadcasts a size of 1, that size must be fixed to 1: a size that varies is not broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ..compat.guards import traced_guards
from ..compat.operators import OpOverload, schema_of
from ..compat.pytrees import tree_map_only
from ..spec.errors import DynamicShapeError
from ..spec.locations import location_of_node
from ..spec.sizes import is_static
from .guards import GuardOrigin, shape_env_of

aten = torch.ops.aten

Relation = tuple[str, Any, Any, bool]
"""What is compared, its size, the size that it must have, and whether it may be smaller."""


def check_operand_sizes(program: ExportedProgram) -> None:
    """State the relations between sizes of operands that torch's trace leaves out, as guards.

    Raises:
        DynamicShapeError: The sizes of the examples do not fit.
    """
    environment = shape_env_of(program)
    if environment is None:
        return
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            for node in module.graph.nodes:
                _check(node, environment)


def _check(node: Node, environment: Any) -> None:
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return
    schema = schema_of(node.target)
    namespace, _, name = schema.name.partition("::")
    relations = _RELATIONS.get(name.rstrip("_"))
    if namespace != "aten" or relations is None:
        return
    names = [argument.name for argument in schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    values = tree_map_only(Node, lambda item: item.meta["val"], given)
    mode = values["weight" if name == "embedding" else "self"].fake_mode
    origin = GuardOrigin(str(node.target), location_of_node(node))
    with mode, environment.ignore_fresh_unbacked_symbols(), traced_guards(lambda *_: origin):
        for what, size, wanted, smaller in relations(values):
            if _is_unbacked(size) or _is_unbacked(wanted):
                continue  # known only when the program runs
            one = is_static(wanted) and wanted == 1 and not is_static(size) and not smaller
            if one or not (size <= wanted if smaller else size == wanted):
                _refuse(node, name, what, size, wanted)


def _refuse(node: Node, name: str, what: str, size: Any, wanted: Any) -> None:
    one = not is_static(size) and size.node.hint == 1
    raise DynamicShapeError(
        f"{name}: {what} of size {_spelled(size)} does not fit {_spelled(wanted)}"
        + (
            "; a size that varies is not broadcast: make it a fixed size of 1, or give an example "
            "of the full size"
            if one
            else ""
        ),
        location=location_of_node(node),
    )


def _spelled(size: Any) -> str:
    return str(size) if is_static(size) else f"{size.node.hint} in the example"


def _is_unbacked(size: Any) -> bool:
    return not is_static(size) and not size.node.has_hint()


def _broadcast(what: str, shape: Sequence[Any], wanted: Sequence[Any]) -> Iterator[Relation]:
    """Yield the relations for a shape that is broadcast to another one, as `expand` does."""
    for size, full in zip(reversed(shape), reversed(wanted), strict=False):
        if not (is_static(size) and size == 1):
            yield what, size, full, False


def _same(what: str, shape: Sequence[Any], wanted: Sequence[Any]) -> Iterator[Relation]:
    for size, full in zip(shape, wanted, strict=False):
        yield what, size, full, False


def _indexes(index: Tensor, size: Any) -> Iterator[Relation]:
    """Yield the relation that a dimension without elements is indexed by no index."""
    yield "a dimension without elements, indexed by an index", _one_or_none(index), size, True


def _one_or_none(index: Tensor) -> Any:
    count = index.numel()
    return min(count, 1) if is_static(count) else torch.sym_min(count, 1)


def _index(given: Mapping[str, Any]) -> Iterator[Relation]:
    for index, size in zip(given["indices"], given["self"].shape, strict=False):
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            return  # as many as there are true elements
        if index is not None:
            yield from _indexes(index, size)


def _index_put(given: Mapping[str, Any]) -> Iterator[Relation]:
    indices = given["indices"]
    if any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices):
        return
    yield from _index(given)
    indexed = aten.index.Tensor(given["self"], indices)
    yield from _broadcast("a dimension of the values", given["values"].shape, indexed.shape)


def _index_select(given: Mapping[str, Any]) -> Iterator[Relation]:
    x = given["self"]
    if x.dim():
        yield from _indexes(given["index"], x.shape[given["dim"]])


def _embedding(given: Mapping[str, Any]) -> Iterator[Relation]:
    yield from _indexes(given["indices"], given["weight"].shape[0])


def _take(given: Mapping[str, Any]) -> Iterator[Relation]:
    yield from _indexes(given["index"], given["self"].numel())


def _by_slices(given: Mapping[str, Any]) -> Iterator[Relation]:
    x, index, source = given["self"], given["index"], given["source"]
    if not x.dim() or not source.dim():
        return
    dim = given["dim"] % x.dim()
    yield from _indexes(index, x.shape[dim])
    for axis, size in enumerate(source.shape):
        wanted = index.numel() if axis == dim else x.shape[axis]
        yield f"dimension {axis} of the source", size, wanted, False


def _by_elements(given: Mapping[str, Any]) -> Iterator[Relation]:
    x, index, source = given["self"], given["index"], given.get("src")
    if not x.dim() or not index.dim():
        return
    yield from _indexes(index, x.shape[given["dim"]])
    for axis, size in enumerate(index.shape):
        if isinstance(source, Tensor) and source.dim():
            yield f"dimension {axis} of the index", size, source.shape[axis], True
        if axis != given["dim"] % x.dim():
            yield f"dimension {axis} of the index", size, x.shape[axis], True


def _put(given: Mapping[str, Any]) -> Iterator[Relation]:
    yield from _take(given)
    yield "the source", given["source"].numel(), given["index"].numel(), False


def _select(given: Mapping[str, Any]) -> Iterator[Relation]:
    index = given["index"]
    if is_static(index):
        least = index + 1 if index >= 0 else -index
        yield f"what index {index} needs", least, given["self"].shape[given.get("dim", 0)], True


def _select_scatter(given: Mapping[str, Any]) -> Iterator[Relation]:
    yield from _select(given)
    yield from _of_view(aten.select.int)(given)


def _of_view(view: OpOverload) -> Callable[[Mapping[str, Any]], Iterator[Relation]]:
    def relations(given: Mapping[str, Any]) -> Iterator[Relation]:
        rest = {name: value for name, value in given.items() if name not in ("self", "src")}
        written = view(given["self"], **rest)
        yield from _same("a dimension of the source", given["src"].shape, written.shape)

    return relations


def _classes(given: Mapping[str, Any]) -> Iterator[Relation]:
    scores, target = given["self"], given["target"]
    if not target.dtype.is_floating_point and scores.dim():
        yield from _indexes(target, scores.shape[1 if scores.dim() > 1 else 0])


def _nll_loss_backward(given: Mapping[str, Any]) -> Iterator[Relation]:
    yield from _classes(given)
    gradient, target = given["grad_output"], given["target"]
    if given["reduction"] == 0:
        yield from _same("the gradient", gradient.shape, target.shape)
    else:
        yield "the gradient", gradient.numel(), 1, False


_RELATIONS: dict[str, Callable[[Mapping[str, Any]], Iterator[Relation]]] = {
    "cross_entropy_loss": _classes,
    "diagonal_scatter": _of_view(aten.diagonal.default),
    "embedding": _embedding,
    "gather": _by_elements,
    "index": _index,
    "index_add": _by_slices,
    "index_copy": _by_slices,
    "index_put": _index_put,
    "index_fill": _index_select,
    "index_reduce": _by_slices,
    "index_select": _index_select,
    "multi_margin_loss": _classes,
    "nll_loss": _classes,
    "nll_loss2d": _classes,
    "nll_loss2d_backward": _nll_loss_backward,
    "nll_loss2d_forward": _classes,
    "nll_loss_backward": _nll_loss_backward,
    "nll_loss_forward": _classes,
    "nll_loss_nd": _classes,
    "put": _put,
    "scatter": _by_elements,
    "scatter_add": _by_elements,
    "scatter_reduce": _by_elements,
    "select": _select,
    "select_scatter": _select_scatter,
    "slice_scatter": _of_view(aten.slice.Tensor),
    "take": _take,
}
"""The relations of each operator, by its name without the mark of writes in place."""
