"""What tests of TensorRT's parts share: programs made of ONNX's text, and the library."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import onnx
import onnx_ir
import torch

from pelton.aot.raising.fx import Port
from pelton.aot.raising.onnx import OnnxProgram
from pelton.aot.targets.tensorrt.library import Library, Log, open_library
from pelton.runtime.call.dtypes import dtype_of
from pelton.runtime.call.signature import Parameter, Signature, TensorSpec
from pelton.runtime.call.sizes import Dim

_TYPES = {
    "FLOAT": torch.float32, "DOUBLE": torch.float64, "INT64": torch.int64, "INT32": torch.int32,
    "INT16": torch.int16, "INT8": torch.int8, "UINT8": torch.uint8, "BOOL": torch.bool,
    "FLOAT16": torch.float16,
}  # fmt: skip


def program_of(
    text: str,
    *dims: Dim,
    state: Mapping[str, torch.Tensor] | None = None,
    parameters: Mapping[str, torch.Tensor] | None = None,
) -> OnnxProgram:
    """Return a model in ONNX's text as a program.

    Args:
        text: Inputs, outputs and nodes.
        dims: Its dynamic dimensions.
        state: First values of inputs that are state, by input.
        parameters: Values of inputs that are weights, by input.
    """
    proto = onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 23]> main {text}')
    model = onnx_ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    for number, node in enumerate(model.graph.all_nodes()):
        node.name = f"node_{number}"
    inputs = tuple(_port(v, state or {}, parameters or {}) for v in model.graph.inputs)
    outputs = tuple(_port(v, {}, {}) for v in model.graph.outputs)
    own = [port for port in inputs if port.kind == "user"]
    leaves = [TensorSpec(dtype_of(port.dtype), port.shape) for port in own]
    results = [TensorSpec(dtype_of(port.dtype), port.shape) for port in outputs]
    signature = Signature(
        "main",
        tuple(Parameter(p.name, "POSITIONAL_OR_KEYWORD", i) for i, p in enumerate(own)),
        tuple(leaves),
        ["tuple", [*range(len(results))]],
        tuple(results),
        dims,
    )
    return OnnxProgram(
        "main", model, signature, inputs, outputs, dict(state or {}), dict(parameters or {})
    )


def _port(value: Any, state: Mapping[str, Any], parameters: Mapping[str, Any]) -> Port:
    kind = "state" if value.name in state else "parameter" if value.name in parameters else "user"
    sizes = [size if isinstance(size, int) else str(size.value) for size in value.shape]
    origin = f"model::{value.name}" if kind == "parameter" else value.name
    return Port(value.name, kind, origin, _TYPES[value.dtype.name], tuple(sizes))  # type: ignore[arg-type]


@contextlib.contextmanager
def opened() -> Iterator[tuple[Library, Any, Log]]:
    """Yield TensorRT-RTX with its logger and its log."""
    library = open_library("rtx")
    with library.logging() as (logger, log):
        yield library, logger, log
