"""Simplification of ONNX models that changes no numbers."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

_ITERATIONS = 2
_SUBGRAPHS = "pkg.torch."


def optimize(model: Any) -> None:
    """Inline, fold and clean up an `onnx_ir.Model` in place.

    That is what onnxscript does by default, without its rules for `x + 0` and `x * 1`: they compare
    with a tolerance, and so remove the small constants of normalisations (`x + 1e-12`).

    Args:
        model: The model as torch.onnx gives it without optimising.
    """
    passes = importlib.import_module("onnx_ir.passes.common")
    optimizer = importlib.import_module("onnxscript.optimizer")
    rewriter = importlib.import_module("onnxscript.rewriter")
    passes.InlinePass()(model)
    for _ in range(_ITERATIONS):
        optimizer.fold_constants(model)
        rewriter.rewrite(model, _exact_rules(rewriter))
    _select_by_gather(model.graph)
    _state_scales(model.graph)
    for finish in (
        passes.RemoveUnusedNodesPass(),
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.LiftSubgraphInitializersToMainGraphPass(),
        passes.DeduplicateInitializersPass(),
        passes.CommonSubexpressionEliminationPass(),
        passes.OutputFixPass(),
        passes.NameFixPass(),
    ):
        finish(model)


def _select_by_gather(graph: Any) -> None:
    """Make one Gather of each Slice of one element whose dimension is squeezed away.

    TensorRT's parser makes some fifteen layers of a Slice of a tensor with dynamic sizes.
    """
    onnx_ir = importlib.import_module("onnx_ir")
    for squeeze in [node for node in graph.all_nodes() if node.op_type == "Squeeze"]:
        cut = squeeze.inputs[0].producer()
        if cut is None or cut.op_type != "Slice":
            continue
        start, end, axes, steps = (_constant(cut, index) for index in (1, 2, 3, 4))
        if axes is None or start is None or end is None or (steps or [1]) != [1]:
            continue
        if len(axes) != 1 or axes != _constant(squeeze, 1):
            continue
        size = _static_size(cut.inputs[0], axes[0])
        if size is None or not 0 <= start[0] < size or end[0] != start[0] + 1:
            continue
        index = onnx_ir.Value(
            name=f"{squeeze.name}_index", const_value=onnx_ir.tensor(start[0], name="index")
        )
        squeeze.graph.register_initializer(index)
        gather = onnx_ir.node(
            "Gather",
            [cut.inputs[0], index],
            {"axis": axes[0]},
            name=squeeze.name,
            metadata_props=squeeze.metadata_props,
        )
        old, new = squeeze.outputs[0], gather.outputs[0]
        squeeze.graph.insert_before(squeeze, gather)
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        squeeze.graph.remove(squeeze, safe=True)
        new.name, new.shape, new.type = old.name, old.shape, old.type


def _state_scales(graph: Any) -> None:
    """State the scale of attention whose queries have a fixed width.

    Without it TensorRT's parser computes the scale, its standard value, in layers of the network.
    """
    onnx_ir = importlib.import_module("onnx_ir")
    for node in graph.all_nodes():
        if node.op_type == "Attention" and "scale" not in node.attributes:
            query = node.inputs[0]
            width = _static_size(query, -1)
            if query.shape is not None and len(query.shape) == 4 and width:
                node.attributes.add(onnx_ir.AttrFloat32("scale", width**-0.5))


def _constant(node: Any, index: int) -> list[int] | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None or value.const_value is None or len(value.const_value.shape) != 1:
        return None
    return [int(number) for number in value.const_value.numpy()]


def _static_size(value: Any, axis: int) -> int | None:
    size = value.shape[axis] if value.shape is not None else None
    return size if isinstance(size, int) else None


@contextlib.contextmanager
def nested_subgraphs() -> Iterator[None]:
    """Let torch.onnx convert branches within loops, whose versions it states two ways (2.13)."""
    owner = importlib.import_module("onnxscript.version_converter").ConvertVersionPass
    convert = owner.call

    def call(self: Any, model: Any) -> Any:
        _agree_on_versions(model)
        return convert(self, model)

    with mock.patch.object(owner, "call", call):
        yield


def _agree_on_versions(model: Any) -> None:
    """Give subgraphs one version: torch.onnx states another for those within others."""
    imports = [model.opset_imports, *(f.opset_imports for f in model.functions.values())]
    for stated in imports:
        for domain in [*stated]:
            if domain.startswith(_SUBGRAPHS):
                stated[domain] = model.opset_imports[""]


def _exact_rules(rewriter: Any) -> Sequence[Any]:
    approximate = importlib.import_module("onnxscript.rewriter.rules.common._no_op").rules
    left_out = {id(rule) for rule in approximate}
    return [rule for rule in rewriter._DEFAULT_REWRITE_RULES if id(rule) not in left_out]
