"""Simplification of ONNX models that preserves their values."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from ..compat.onnxscript import before_version_conversion, exact_rewrite_rules
from ..spec.sizes import is_static

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
        rewriter.rewrite(model, exact_rewrite_rules())
    _select_by_gather(model.graph)
    _state_scales(model.graph)
    _widen_attention(model.graph)
    _widen_indices(model.graph)
    _give_second_dimension(model.graph)
    for finish in (
        passes.RemoveUnusedNodesPass(),
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.LiftSubgraphInitializersToMainGraphPass(),
        passes.DeduplicateInitializersPass(),
        passes.CommonSubexpressionEliminationPass(),
    ):
        finish(model)
    _expand_masks(model.graph)
    for finish in (passes.OutputFixPass(), passes.NameFixPass()):
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


def _widen_attention(graph: Any) -> None:
    """Give queries, keys and values of attention one width, which TensorRT asks for.

    Zeros are added to the narrower ones: they change no score, and are cut off the result.
    """
    for node in [node for node in graph.all_nodes() if node.op_type == "Attention"]:
        widths = [_static_size(operand, -1) for operand in node.inputs[:3]]
        if None in widths or len(set(widths)) == 1 or "scale" not in node.attributes:
            continue
        widest = max(width for width in widths if width is not None)
        for index, width in enumerate(widths):
            if width is not None and width < widest:
                node.replace_input_with(index, _padded(node, index, widest - width))
        if widths[2] != widest:
            _cut_result(node, widths[2])


def _widen_indices(graph: Any) -> None:
    """Give GatherND and ScatterND the int64 indices that ONNX asks for.

    torch.onnx passes on those of int32, which PyTorch takes; onnxruntime does not load the model.
    """
    onnx_ir = importlib.import_module("onnx_ir")
    wide = onnx_ir.DataType.INT64
    for node in [node for node in graph.all_nodes() if node.op_type in ("GatherND", "ScatterND")]:
        indices = node.inputs[1]
        if indices.dtype == wide:
            continue
        cast = onnx_ir.node("Cast", [indices], {"to": int(wide)}, name=f"{node.name}_indices")
        node.graph.insert_before(node, cast)
        cast.outputs[0].dtype, cast.outputs[0].shape = wide, indices.shape
        node.replace_input_with(1, cast.outputs[0])


def _give_second_dimension(graph: Any) -> None:
    """Have ArgMax and ArgMin of one dimension take it as the second of two, for TensorRT."""
    onnx_ir = importlib.import_module("onnx_ir")
    for node in [node for node in graph.all_nodes() if node.op_type in ("ArgMax", "ArgMin")]:
        operand, (result,) = node.inputs[0], node.outputs
        if not _is_vector(operand):
            continue
        first = _integers(node, [0])
        row = onnx_ir.node("Unsqueeze", [operand, first], name=f"{node.name}_row")
        node.graph.insert_before(node, row)
        node.replace_input_with(0, row.outputs[0])
        node.attributes["axis"] = onnx_ir.AttrInt64("axis", 1)
        place = onnx_ir.node("Squeeze", [result, first], name=f"{node.name}_place").outputs[0]
        place.dtype, place.shape, result.shape = result.dtype, result.shape, None
        result.replace_all_uses_with(place, replace_graph_outputs=True)
        node.graph.insert_after(node, place.producer())
        place.producer().replace_input_with(0, result)
        place.name, result.name = result.name, f"{result.name}.of_row"
        for made in (row, place.producer()):
            made.metadata_props.update(node.metadata_props)


def _is_vector(value: Any) -> bool:
    """Return whether a tensor has one dimension, as far as that is known."""
    if value.shape is not None:
        return len(value.shape) == 1
    made = value.producer()
    return made is not None and made.op_type == "Reshape" and _constant(made, 1) == [-1]


def _padded(node: Any, index: int, added: int) -> Any:
    """Return an operand of a node with zeros at the end of its last axis."""
    onnx_ir = importlib.import_module("onnx_ir")
    operand = node.inputs[index]
    rank = len(operand.shape)
    ends = _integers(node, [0] * (2 * rank - 1) + [added])
    pad = onnx_ir.node("Pad", [operand, ends], name=f"{node.name}_padded_{index}")
    node.graph.insert_before(node, pad)
    result = pad.outputs[0]
    result.dtype = operand.dtype
    result.shape = onnx_ir.Shape([*operand.shape[:-1], operand.shape[-1] + added])
    return result


def _cut_result(node: Any, width: int | None) -> None:
    """Keep the first elements of the last axis of what a node gives."""
    onnx_ir = importlib.import_module("onnx_ir")
    whole = node.outputs[0]
    cut = onnx_ir.node(
        "Slice", [whole, *(_integers(node, [n]) for n in (0, width, -1))], name=f"{node.name}_cut"
    )
    result = cut.outputs[0]
    result.type, result.shape = whole.type, whole.shape
    if whole.shape is not None:
        whole.shape = onnx_ir.Shape([*whole.shape[:-1], None])
    whole.replace_all_uses_with(result, replace_graph_outputs=True)
    cut.replace_input_with(0, whole)
    node.graph.insert_after(node, cut)


def _constant(node: Any, index: int) -> list[int] | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None or value.const_value is None or len(value.const_value.shape) != 1:
        return None
    return [int(number) for number in value.const_value.numpy()]


def _expand_masks(graph: Any) -> None:
    """Give masks of attention a row for each query and a column for each key.

    onnxruntime (1.32) refuses those that have one for all of them. Each is expanded once for all
    nodes that share it.
    """
    expanded: dict[tuple[int, str], Any] = {}
    for node in [node for node in graph.all_nodes() if node.op_type == "Attention"]:
        mask = node.inputs[3] if len(node.inputs) > 3 else None
        if (
            mask is None
            or mask.shape is None
            or any(len(v.shape or ()) != 4 for v in node.inputs[:2])
        ):
            continue
        wanted = {-2: node.inputs[0].shape[2], -1: node.inputs[1].shape[2]}
        single = [axis for axis in wanted if _static_size(mask, axis) == 1 and wanted[axis] != 1]
        if not single:
            continue
        key = (id(mask), str([wanted[axis] for axis in single]))
        if None in wanted.values() or key not in expanded:
            expanded[key] = _expanded(node, mask, single)
        node.replace_input_with(3, expanded[key])


def _expanded(node: Any, mask: Any, axes: Sequence[int]) -> Any:
    """Insert what expands a mask along axes before its attention; return the expanded mask."""
    onnx_ir = importlib.import_module("onnx_ir")
    sizes = [
        _size_node(node, axis) if axis in axes else _constant_size(node, 1) for axis in (-2, -1)
    ]
    made = [each.producer() for each in sizes if each.producer() is not None]
    shape = onnx_ir.node("Concat", sizes, {"axis": 0}, name=f"{node.name}_mask_shape")
    expand = onnx_ir.node("Expand", [mask, shape.outputs[0]], name=f"{node.name}_mask")
    node.graph.insert_before(node, [*made, shape, expand])
    result = expand.outputs[0]
    result.type, result.dtype = mask.type, mask.dtype
    operands = {-2: node.inputs[0], -1: node.inputs[1]}
    known = list(mask.shape)
    for axis in axes:
        known[axis] = operands[axis].shape[2]
    result.shape = type(mask.shape)(known)
    return result


def _size_node(node: Any, axis: int) -> Any:
    """Return the number of queries (axis -2) or keys (-1) as a tensor of one integer."""
    onnx_ir = importlib.import_module("onnx_ir")
    operand = node.inputs[0 if axis == -2 else 1]
    size = _static_size(operand, 2)
    if size is not None:
        return _constant_size(node, size)
    name = f"{node.name}_{'queries' if axis == -2 else 'keys'}"
    return onnx_ir.node("Shape", [operand], {"start": 2, "end": 3}, name=name).outputs[0]


def _constant_size(node: Any, size: int) -> Any:
    return _integers(node, [size])


def _integers(node: Any, numbers: Sequence[int | None]) -> Any:
    """Return a constant vector of integers of a node's graph."""
    onnx_ir = importlib.import_module("onnx_ir")
    name = f"size_{'_'.join(map(str, numbers))}"
    known = node.graph.initializers.get(name)
    if known is not None:
        return known
    value = onnx_ir.Value(name=name, const_value=onnx_ir.tensor(numbers, name=name))
    value.dtype, value.shape = onnx_ir.DataType.INT64, onnx_ir.Shape([len(numbers)])
    node.graph.register_initializer(value)
    return value


def _static_size(value: Any, axis: int) -> int | None:
    size = value.shape[axis] if value.shape is not None else None
    return size if is_static(size) else None


def nested_subgraphs() -> AbstractContextManager[None]:
    """Let torch.onnx convert branches within loops, whose versions it states two ways (2.13)."""
    return before_version_conversion(_agree_on_versions)


def _agree_on_versions(model: Any) -> None:
    """Give subgraphs one version: torch.onnx states another for those within others."""
    imports = [model.opset_imports, *(f.opset_imports for f in model.functions.values())]
    for stated in imports:
        for domain in [*stated]:
            if domain.startswith(_SUBGRAPHS):
                stated[domain] = model.opset_imports[""]
