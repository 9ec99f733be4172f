"""Model configurations of NVIDIA's inference server, for the entry points of a package.

The fields are those of `ModelConfig` in the server's `model_config.proto`; the text is protobuf's
text format. What a configuration cannot say is refused here, and not found out by the server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

import numpy as np

from pelton.runtime.archive.parameter_set import ParameterSet
from pelton.runtime.artifacts.entry_points import LIBRARIES, EntryPoint, Port, Role
from pelton.runtime.artifacts.manifest import Manifest
from pelton.runtime.call.sizes import UNKNOWN, Dim, names_in
from pelton.runtime.errors import ArtifactError

Backend = Literal["tensorrt", "onnxruntime"]
"""The server's backend that runs a model: engines, or the reference graphs."""


@dataclass(frozen=True)
class BackendFiles:
    """What the server calls a backend's platform and model files, by the roles of members."""

    platform: str
    files: Mapping[Role, str]


BACKENDS: dict[Backend, BackendFiles] = {
    "tensorrt": BackendFiles("tensorrt_plan", {"engine": "model.plan"}),
    "onnxruntime": BackendFiles("onnxruntime_onnx", {"reference": "model.onnx"}),
}


class Word(str):
    """The name of an enumerator, which is written without quotes."""


@dataclass(frozen=True)
class ModelConfig:
    """A configuration and the files that it refers to.

    Attributes:
        text: The contents of `config.pbtxt`.
        initial_state: The contents of the files of state that does not begin as zeros, by name.
    """

    text: str
    initial_state: dict[str, bytes] = field(default_factory=dict)


def model_config(
    name: str,
    manifest: Manifest,
    function: EntryPoint,
    state: ParameterSet,
    *,
    backend: Backend = "tensorrt",
    batching: bool = True,
) -> ModelConfig:
    """Return the configuration of an entry point.

    Args:
        name: The model's name in the server.
        manifest: The package.
        function: One of its entry points.
        state: The initial state.
        backend: What runs it.
        batching: Let the server put requests together, where the first dimension allows it.

    Raises:
        ArtifactError: The server cannot run it; says why, and what to do.
    """
    _check(manifest, function, backend)
    batch = _batch_dimension(function) if batching else None
    config: dict[str, Any] = {
        "name": name,
        "platform": BACKENDS[backend].platform,
        "max_batch_size": batch.max if batch else 0,
        "input": [_tensor(port, batch, backend) for port in _user(function.inputs)],
        "output": [_tensor(port, batch, backend) for port in _user(function.outputs)],
    }
    group: dict[str, Any] = {"kind": Word("KIND_GPU"), "count": 1}
    if len(function.profiles) > 1 and backend == "tensorrt":
        group["profile"] = [str(index) for index in range(len(function.profiles))]
    config["instance_group"] = [group]
    files: dict[str, bytes] = {}
    if function.ports("state"):
        states = [_state(pair, state, files) for pair in _state_pairs(manifest, function)]
        config["sequence_batching"] = {"state": states}
    elif batch is not None:
        preferred = [batch.opt] if batch.opt and batch.opt > 1 else []
        config["dynamic_batching"] = {"preferred_batch_size": preferred} if preferred else {}
    return ModelConfig(render(config), files)


def render(message: Mapping[str, Any], indent: str = "") -> str:
    """Return a message in protobuf's text format.

    Example:
        >>> print(render({"name": "m", "group": [{"kind": Word("KIND_GPU"), "gpus": [0, 1]}]}))
        name: "m"
        group {
          kind: KIND_GPU
          gpus: [ 0, 1 ]
        }
        <BLANKLINE>
    """
    lines = []
    for name, value in message.items():
        values = value if isinstance(value, list) else [value]
        if values and isinstance(values[0], Mapping):
            inner = [render(each, indent + "  ") for each in values]
            lines += [f"{indent}{name} {{\n{each}{indent}}}\n" for each in inner]
        elif isinstance(value, list):
            items = ", ".join(map(_scalar, value))
            lines.append(f"{indent}{name}: [ {items} ]\n" if items else f"{indent}{name}: []\n")
        else:
            lines.append(f"{indent}{name}: {_scalar(value)}\n")
    return "".join(lines)


def _scalar(value: Any) -> str:
    return str(value) if isinstance(value, Word) else json.dumps(value, ensure_ascii=False)


def _check(manifest: Manifest, function: EntryPoint, backend: Backend) -> None:
    what = f"entry point {function.name!r} cannot be served"
    if backend == "tensorrt" and manifest.flavor != "tensorrt":
        title = LIBRARIES[manifest.flavor].title
        raise ArtifactError(
            f"{what}: the server runs engines of TensorRT, these are of {title}; compile it with "
            "flavor='tensorrt', or let --backend onnxruntime run its ONNX graph"
        )
    role = next(iter(BACKENDS[backend].files))
    if role not in function.members:
        ways = {"engine": "IREE runs it", "reference": "compile it with reference=True"}
        raise ArtifactError(f"{what}: the package has no {role} of it ({ways[role]})")
    weights = function.ports("parameter")
    if weights:
        raise ArtifactError(
            f"{what}: {len(weights)} weights are inputs of it, which the server cannot keep; "
            "compile it with weights='baked'"
        )
    for port in (*function.inputs, *function.outputs):
        if port.dtype.name not in _DATA_TYPES:
            raise ArtifactError(f"{what}: the server has no {port.dtype}, the type of {port.name}")


_INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
_DATA_TYPES: dict[str, Word] = {
    "bool": Word("TYPE_BOOL"),
    **{name: Word(f"TYPE_{name.upper()}") for name in _INTEGERS},
    "float16": Word("TYPE_FP16"),
    "bfloat16": Word("TYPE_BF16"),
    "float32": Word("TYPE_FP32"),
    "float64": Word("TYPE_FP64"),
}
"""The server's names of element types."""


def _user(ports: Sequence[Port]) -> list[Port]:
    return [port for port in ports if port.kind == "user"]


def _tensor(port: Port, batch: Dim | None, backend: Backend) -> dict[str, Any]:
    """Return the message of an input or output; the server's have at least one dimension."""
    shape = port.shape[1:] if batch else port.shape
    dims = [size if isinstance(size, int) else -1 for size in shape]
    kind = _DATA_TYPES[port.dtype.name]
    message: dict[str, Any] = {"name": port.name, "data_type": kind, "dims": dims or [1]}
    if not dims:
        message["reshape"] = {"shape": []}
    if port.host and backend == "tensorrt":
        message["is_shape_tensor"] = True
    return message


def _batch_dimension(function: EntryPoint) -> Dim | None:
    """Return the dimension that the server may make batches of.

    It is the first of all inputs and outputs, occurs nowhere else, and a single row is allowed.
    """
    ports = [*_user(function.inputs), *_user(function.outputs)]
    if function.ports("state") or any(port.host or not port.shape for port in ports):
        return None
    first = {str(port.shape[0]) for port in ports}
    rest = {name for port in ports for size in port.shape[1:] for name in names_in(size)}
    dims = {dim.name: dim for dim in function.signature.dims}
    if len(first) != 1 or first & rest or UNKNOWN in first:
        return None
    found = dims.get(first.pop())
    return found if found and found.min <= 1 and found.max is not None else None


def _state_pairs(manifest: Manifest, function: EntryPoint) -> list[tuple[Port, Port]]:
    """Return input and output of each piece of state.

    Raises:
        ArtifactError: The server cannot keep a piece of it.
    """
    inputs = {port.origin: port for port in function.inputs if port.kind == "state"}
    outputs = {port.origin: port for port in function.outputs if port.kind == "state"}
    what = f"entry point {function.name!r} cannot be served: state"
    for name, port in function.ports("state").items():
        others = [f.name for f in manifest.functions if name in f.ports("state")]
        others.remove(function.name)
        if others:
            raise ArtifactError(
                f"{what} {name!r} is shared with {', '.join(others)}, and models of the server "
                "share none; pass it as an argument and return it"
            )
        if name not in inputs or name not in outputs:
            how = "written" if name in outputs else "read"
            raise ArtifactError(f"{what} {name!r} is only {how}, the server keeps what is both")
        if not port.shape:
            raise ArtifactError(
                f"{what} {name!r} has no dimensions, which the server needs; give it shape [1]"
            )
    return [(inputs[name], outputs[name]) for name in inputs]


def _state(
    pair: tuple[Port, Port], values: ParameterSet, files: dict[str, bytes]
) -> dict[str, Any]:
    before, after = pair
    value = values[before.origin].array()
    kind, dims = _DATA_TYPES[before.dtype.name], list(before.shape)
    initial: dict[str, Any] = {"data_type": kind, "dims": dims}
    if not np.any(np.ascontiguousarray(value).view(np.uint8)):
        initial["zero_data"] = True
    else:
        name = quote(before.origin, safe="")
        files[name] = value.tobytes()
        initial["data_file"] = name
    initial["name"] = before.origin
    return {
        "input_name": before.name,
        "output_name": after.name,
        "data_type": kind,
        "dims": dims,
        "initial_state": [initial],
    }
