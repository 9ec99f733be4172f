"""Dry-run reports: the operators that TensorRT takes of a function, and the memory it needs."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pelton.runtime.artifacts.entry_points import EngineProfile, Port
from pelton.runtime.call.sizes import names_in

from ...raising.fx import ModuleSource
from ...raising.onnx import OnnxProgram
from ...spec.errors import ExportError, UnsupportedOpError
from ..base import FunctionReport, Refusal
from .functions import Parsed, network_of, onnx_program, parsed
from .library import Library
from .network import Network, operators_of
from .options import TensorRTOptions

_SMALL_ELEMENTS = 1024
"""Constants up to this size are kept for shape inference: sizes are among them."""


def report_on(
    library: Library, source: ModuleSource, name: str, options: TensorRTOptions
) -> FunctionReport:
    """Return what TensorRT would take of an entry point.

    Args:
        library: TensorRT or TensorRT-RTX.
        source: The module.
        name: The entry point.
        options: What the user asked for.

    Raises:
        ParameterError: External parameters are missing, or of another type or shape.
    """
    try:
        program = onnx_program(source, name, options)
    except UnsupportedOpError as error:
        reason = "it has no form in ONNX"
        missing = tuple(Refusal(operator, reason) for operator in error.operators)
        return FunctionReport(name, Counter(error.operators), missing or (_refusal(name, error),))
    except ExportError as error:
        return FunctionReport(name, {}, (_refusal(name, error),))
    operators = operators_of(program)
    with (
        library.logging() as logging,
        tempfile.TemporaryDirectory(prefix="pelton-tensorrt-") as folder,
    ):
        network = network_of(library, logging, program, Path(folder))
        if not isinstance(network, Network):
            return FunctionReport(name, operators, tuple(network))
        try:
            function = parsed(program, network, options)
        except ExportError as error:
            return FunctionReport(name, operators, (_refusal(name, error),))
        return FunctionReport(
            name=name,
            operators=operators,
            refusals=(),
            layers=len(function.network.layers),
            profiles=tuple(map(_described, function.profiles)),
            memory_bytes=_memory_bytes(function),
        )


def _refusal(name: str, error: ExportError) -> Refusal:
    return Refusal(f"{name}()", str(error), error.location)


def _described(profile: EngineProfile) -> str:
    ranges = (f"{name} {[*b.min]}..{[*b.max]}" for name, b in profile.inputs.items())
    return f"{profile.name}: {', '.join(ranges) or 'fixed sizes'}"


def _memory_bytes(function: Parsed) -> dict[str, int]:
    """Return the bytes at the largest sizes, by purpose."""
    program = function.program
    largest = _largest_shapes(function.inputs, function.profiles)
    values = _bytes_of_values(program, largest)
    own = {port.name for port in (*function.inputs, *function.outputs) if port.kind == "user"}
    memory = {
        "weights": program.weight_bytes + sum(t.nbytes for t in program.parameters.values()),
        "inputs and outputs": sum(values.get(name, 0) for name in own),
        "state": sum(tensor.nbytes for tensor in program.initial_state.values()),
        "activations": _most_alive(program, values),
    }
    return {purpose: nbytes for purpose, nbytes in memory.items() if nbytes}


def _largest_shapes(
    inputs: Sequence[Port], profiles: Sequence[EngineProfile]
) -> dict[str, tuple[int, ...]]:
    largest: dict[str, tuple[int, ...]] = {}
    for port in inputs:
        bounds = [p.inputs[port.name].max for p in profiles if port.name in p.inputs]
        if port.host or not bounds:
            fixed = not any(names_in(size) for size in port.shape)
            largest[port.name] = port.shape if fixed else ()
        else:
            largest[port.name] = max(bounds, key=math.prod)
    return largest


def _bytes_of_values(program: OnnxProgram, inputs: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the bytes of each value of a model at given shapes of its inputs.

    Values whose shape ONNX's inference does not find, such as those that depend on data, are left
    out.
    """
    import onnx
    import onnx_ir

    model = program.model.clone()
    for value in model.graph.inputs:
        value.shape = onnx_ir.Shape(inputs[value.name])
    for node in model.graph.all_nodes():
        for output in node.outputs:
            output.shape = None  # stated in terms of names
    for name, value in [*model.graph.initializers.items()]:
        if value.const_value.size > _SMALL_ELEMENTS:
            del model.graph.initializers[name]
            value.const_value = None
            model.graph.inputs.append(value)
    inferred = onnx.shape_inference.infer_shapes(onnx_ir.to_proto(model), data_prop=True)
    found: dict[str, int] = {}
    for info in (*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output):
        tensor = info.type.tensor_type
        sizes = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
        if tensor.HasField("shape") and -1 not in sizes and tensor.elem_type:
            itemsize = onnx_ir.DataType(tensor.elem_type).itemsize
            found[info.name] = math.ceil(math.prod(sizes) * itemsize)
    return found


def _most_alive(program: OnnxProgram, values: Mapping[str, int]) -> int:
    """Return the most bytes of intermediate results that are needed at one time."""
    nodes = [*program.model.graph]
    outputs = {value.name for value in program.model.graph.outputs}
    last_use: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for value in node.inputs:
            if value is not None:
                last_use[str(value.name)] = index
    ending: dict[int, list[str]] = {}
    for name, index in last_use.items():
        ending.setdefault(index, []).append(name)
    alive = most = 0
    made: set[Any] = set()
    for index, node in enumerate(nodes):
        for value in node.outputs:
            if value.name not in outputs:
                made.add(value.name)
                alive += values.get(value.name, 0)
        most = max(most, alive)
        for name in ending.get(index, ()):
            if name in made:
                alive -= values.get(name, 0)
    return most
