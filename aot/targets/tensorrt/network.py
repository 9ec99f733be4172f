"""TensorRT networks of ONNX models, or all the reasons why there is none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...raising.onnx import OnnxProgram
from ...spec.errors import SourceLocation, UnsupportedOpError
from ...spec.locations import location_in_trace, operator_in_trace
from ..base import Refusal
from . import builder
from .library import Library, Log

_UNSUPPORTED_DTYPES = {
    "DOUBLE": "float64",
    "COMPLEX64": "complex64",
    "COMPLEX128": "complex128",
    "INT16": "int16",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "STRING": "text",
}
"""Element types that TensorRT lacks. Its parser would make float32 of float64 without an error."""

_NO_CONSTANTS = {*_UNSUPPORTED_DTYPES, "UINT8"}
"""Element types of which TensorRT takes no constants."""

_MOST_FAILURES = 50
"""How many operators are tried again without the one before that failed."""

_STACK_TRACE = "pkg.torch.onnx.stack_trace"
_FX_NODE = "pkg.torch.onnx.fx_node"
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')
_USAGE = re.compile(r"API Usage Error \((?:\S+: )?(.*?)\. In ")
_ASSERTION = re.compile(r"Assertion failed: .*?(?<!:):(?!:) ?")


@dataclass
class Network:
    """A network, ready to be built.

    Attributes:
        builder: The builder that made it.
        definition: TensorRT's `INetworkDefinition`.
        parser: The parser, which holds the weights.
    """

    builder: Any
    definition: Any
    parser: Any

    @property
    def layers(self) -> list[Any]:
        """Its layers in order."""
        return [self.definition.get_layer(i) for i in range(self.definition.num_layers)]

    @property
    def host_inputs(self) -> set[str]:
        """The inputs whose values decide on shapes; the engine reads them on the host."""
        inputs = (self.definition.get_input(i) for i in range(self.definition.num_inputs))
        return {tensor.name for tensor in inputs if tensor.is_shape_tensor}


def parse(library: Library, logger: Any, model: bytes | Path) -> Network | None:
    """Return the network of an ONNX model; None where TensorRT cannot take it.

    Args:
        library: The library.
        logger: Of `Library.logging`.
        model: The model, or the file that has it.
    """
    parsed = builder.parse(library.module, logger, model)
    return None if parsed is None else Network(*parsed)


def refusals(library: Library, logger: Any, program: OnnxProgram) -> list[Refusal]:
    """Return all operators of a model that TensorRT cannot take, in order.

    The parser stops at the first one. Its results are made inputs, and the rest is tried again, so
    this takes as many parses as there are such operators; it is for models that failed.

    Args:
        library: The library.
        logger: Of `Library.logging`.
        program: The model.
    """
    found = typed_wrongly(program)
    model = program.model.clone()
    for _ in range(_MOST_FAILURES):
        refused = _first_refused(library, logger, model)
        if refused is None:
            break
        node, reason = refused
        found.append(_refusal(node, reason))
        if not _cut_out(model, node):
            break
    return list(dict.fromkeys(found))


def typed_wrongly(program: OnnxProgram) -> list[Refusal]:
    """Return the operators of a model whose results are of an element type that TensorRT lacks."""
    graph = program.model.graph
    wrong = [
        Refusal(f"{port.kind} input {port.origin!r}", _no_such_type(type_), None)
        for port, value in zip(program.inputs, graph.inputs, strict=True)
        if (type_ := _type_name(value)) in _UNSUPPORTED_DTYPES
    ]
    for port, value in zip(program.outputs, graph.outputs, strict=True):
        if value.const_value is not None and _type_name(value) in _NO_CONSTANTS:
            wrong.append(Refusal(f"result {port.origin!r}", _no_such_type(_type_name(value)), None))
    for node in graph.all_nodes():
        constants = [v for v in node.inputs if v is not None and v.const_value is not None]
        refused = [type_ for v in node.outputs if (type_ := _type_name(v)) in _UNSUPPORTED_DTYPES]
        refused += [type_ for v in constants if (type_ := _type_name(v)) in _NO_CONSTANTS]
        if refused:
            wrong.append(_refusal(node, _no_such_type(refused[0])))
    return list(dict.fromkeys(wrong))


def _type_name(value: Any) -> str:
    return "" if value.dtype is None else str(value.dtype.name)


def _no_such_type(type_: str) -> str:
    if type_ == "UINT8":
        return "TensorRT has no constants of uint8; make it of int32 and convert it"
    name = _UNSUPPORTED_DTYPES[type_]
    remedy = "; use float32, as by model.float()" if name == "float64" else ""
    return f"TensorRT has no {name}{remedy}"


def _first_refused(library: Library, logger: Any, model: Any) -> tuple[Any, str] | None:
    import onnx_ir

    trt = library.module
    maker = trt.Builder(logger)
    definition = maker.create_network(builder.network_flags(trt))  # it must outlive the parser
    parser = trt.OnnxParser(definition, logger)
    if parser.parse(onnx_ir.to_proto(model).SerializeToString()) or not parser.num_errors:
        return None
    error = parser.get_error(0)
    node = _node_of(error, model)
    return node, _reason(error.desc(), node)


def _node_of(error: Any, model: Any) -> Any:
    """Return the node that an error of the parser is about; None where it does not say."""
    nodes = [*model.graph]
    named = [node for node in model.graph.all_nodes() if node.name == error.node_name()]
    if not named and 0 <= error.node() < len(nodes):
        named = [nodes[error.node()]]
    if not named:  # only the function that imports nodes of a kind is stated
        kind = error.func().removeprefix("import")
        alike = [node for node in model.graph.all_nodes() if node.op_type == kind]
        named = [node for node in alike if "reduction" in node.attributes] or alike
    return named[0] if named else None


def _reason(text: str, node: Any) -> str:
    """Return what the parser says of a node, in words: without its own names and places."""
    usage = _USAGE.search(text)
    reason = usage[1] if usage else _ASSERTION.sub("", text).strip().rstrip(".")
    if reason not in ("", "false"):
        return " ".join(reason.split())[:200]
    given = [] if node is None else [value.dtype for value in node.inputs if value is not None]
    types = ", ".join(dict.fromkeys(dtype.name.lower() for dtype in given if dtype is not None))
    return f"its parser takes no {types or 'such'} operands of it"


def _cut_out(model: Any, node: Any) -> bool:
    """Make inputs of the results of a node; tell whether that is possible.

    What uses a result of unknown type goes as well.
    """
    import onnx_ir

    if node is None or node.graph is not model.graph:
        return False
    graph = model.graph
    for output in node.outputs:
        if output.shape is not None and output.dtype is not None:
            given = onnx_ir.Value(name=f"{output.name}.given", shape=output.shape, type=output.type)
            graph.inputs.append(given)
            output.replace_all_uses_with(given, replace_graph_outputs=True)
    doomed = [node]
    for each in doomed:
        users = [use.node for output in each.outputs for use in output.uses()]
        doomed += [user for user in dict.fromkeys(users) if user not in doomed]
    if any(each.graph is not graph for each in doomed):
        return False
    results = {id(output) for each in doomed for output in each.outputs}
    kept = [output for output in graph.outputs if id(output) not in results]
    graph.outputs.clear()
    graph.outputs.extend(kept)
    graph.remove(doomed, safe=True)
    return bool(kept)


def _refusal(node: Any, reason: str) -> Refusal:
    return Refusal(operator_of(node), reason, location_of_onnx_node(node))


def operator_of(node: Any) -> str:
    """Return the torch operator that an ONNX node comes from, or its own where none is known."""
    if node is None:
        return "the model"
    return operator_in_trace(node.metadata_props.get(_FX_NODE)) or str(node.op_type)


def operators_of(program: OnnxProgram) -> dict[str, int]:
    """Return how often each torch operator occurs in the program that a model was made from."""
    traced = {
        node.metadata_props.get(_FX_NODE, node.name): operator_of(node)
        for node in program.model.graph.all_nodes()
    }
    return dict(Counter(traced.values()).most_common())


def location_of_onnx_node(node: Any) -> SourceLocation | None:
    """Return the user's line that an ONNX node comes from."""
    return location_in_trace(node.metadata_props.get(_STACK_TRACE)) if node is not None else None


def unsupported(function: str, found: Sequence[Refusal], log: Log) -> UnsupportedOpError:
    """Return the error for a function that TensorRT cannot take.

    Args:
        function: The entry point.
        found: The refused operators.
        log: The log of the parser, for a reason where none was found.
    """
    listed = "; ".join(map(str, found)) or "; ".join(log.errors[:3]) or "no reason was given"
    return UnsupportedOpError(
        f"{function}(): TensorRT cannot take {listed}; write it with other operators, or compile "
        "for another target",
        operators=tuple(dict.fromkeys(refusal.operator for refusal in found)),
    )


def layer_descriptions(network: Network, program: OnnxProgram) -> Iterator[dict[str, Any]]:
    """Yield for each layer its name, kind, results and the user's line."""
    by_name = {node.name: node for node in program.model.graph.all_nodes()}
    for layer in network.layers:
        node = by_name.get(layer.name)
        outputs = [layer.get_output(i) for i in range(layer.num_outputs)]
        yield {
            "name": layer.name,
            "kind": layer.type.name.lower(),
            "operator": operator_of(node) if node is not None else None,
            "line": str(location_of_onnx_node(node) or "") or None,
            "outputs": [
                {"name": tensor.name, "dtype": tensor.dtype.name.lower(), "shape": [*tensor.shape]}
                for tensor in outputs
                if tensor is not None
            ],
        }
