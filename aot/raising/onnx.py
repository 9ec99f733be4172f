"""ONNX models of entry points: for other engines, and the way to TensorRT."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from pelton.runtime.call.signature import Signature
from pelton.runtime.call.sizes import UNKNOWN, Dim, names_in, render
from pelton.runtime.errors import ArtifactError, MissingDependencyError
from pelton.runtime.files import StrPath

from ..capture.trace import TRACING_LOCK, tracing_settings
from ..compat.onnx_registry import operators_without_form
from ..spec.errors import ExportError, UnsupportedOpError
from ..spec.locations import location_in_trace, operator_in_trace
from ..spec.sizes import is_static
from .fx import ModuleSource, Port, Raised, raise_function
from .onnx_optimizer import nested_subgraphs, optimize
from .reexport import reexport

_LOG = logging.getLogger("pelton")

OPSET = 23
"""The version of ONNX's operators: the first that has attention as one operator."""

EXTERNAL_DATA_BYTES = 2 * 1024**3 - 1024**2
"""From this size of the weights on they go to a file of their own: a protobuf holds 2 GB."""

_LEFT_OUT = ("aten._assert", "aten.sym_constrain")
"""Operators that torch.onnx leaves out of models: checks of what a program relies on."""

_PACKAGES = ("onnx", "onnxscript")

_NOT_CONSTANT = re.compile(r"should have been constant, but got (.*)")


@dataclass(frozen=True)
class OnnxProgram:
    """A function as an ONNX model, with what its inputs and outputs stand for.

    Inputs and outputs of the model are `inputs` and `outputs` in their order, under their names.
    Numbers are 0-d tensors. A run with state feeds each output of kind `state` back to the input of
    the same `origin`: state that has no output is only read, state without an input only written.

    Attributes:
        name: The function's name in the module.
        model: The model, an `onnx_ir.Model`. Its weights are views of the module's data.
        signature: What a caller passes and gets, with constants and containers: leaf by leaf, in
            order, the inputs and outputs of kind `user` are those leaves that are no constants.
        inputs: First those of the caller, then state, then parameters.
        outputs: First the results, then state.
        initial_state: The first value of each state among inputs and outputs, by its `origin`.
        parameters: The tensor for each input of kind `parameter`, by its name.
        path: Where it was saved, if it was.

    Example:
        >>> from pelton import aot
        >>> out = aot.export(torch.nn.ReLU(), args=(torch.ones(2),))
        >>> program = out.to_onnx("relu.onnx")
        >>> [(port.name, port.kind, port.dtype, port.shape) for port in program.inputs]
        [('input', 'user', torch.float32, (2,))]
    """

    name: str
    model: Any
    signature: Signature
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    initial_state: Mapping[str, torch.Tensor] = field(default_factory=dict)
    parameters: Mapping[str, torch.Tensor] = field(default_factory=dict)
    path: Path | None = None

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dynamic dimensions, with their bounds and optimal sizes."""
        return self.signature.dims

    @property
    def weight_bytes(self) -> int:
        """The bytes of the weights in the model."""
        return sum(value.const_value.nbytes for value in self.model.graph.initializers.values())

    def save(self, file_path: StrPath, *, external_data: bool | None = None) -> Path:
        """Write the model, atomically.

        Args:
            file_path: The `.onnx` file.
            external_data: Put the weights into a file beside it, of its name with `.data`
                appended; None: only where they would not fit into the model.

        Returns:
            The path.

        Raises:
            ArtifactError: It cannot be written, or the weights do not fit.
        """
        onnx_ir = _imported("onnx_ir")
        target = Path(file_path)
        if target.is_dir() or not target.parent.is_dir():
            raise ArtifactError(f"cannot write {target}: it is a folder, or its folder is missing")
        large = self.weight_bytes >= EXTERNAL_DATA_BYTES
        if external_data is False and large:
            raise ArtifactError(
                f"cannot write {target}: weights of {self.weight_bytes} bytes do not fit into an "
                "ONNX file; leave external_data out"
            )
        data = target.name + ".data" if external_data or large else None
        with tempfile.TemporaryDirectory(prefix=".pelton-", dir=target.parent) as folder:
            written = Path(folder, target.name)
            onnx_ir.save(self.model, written, external_data=data)
            if data is not None and Path(folder, data).exists():
                os.replace(Path(folder, data), target.parent / data)
            os.replace(written, target)
        return target

    def to_bytes(self) -> bytes:
        """Return the model as one protobuf.

        Raises:
            ArtifactError: Its weights do not fit into one.
        """
        if self.weight_bytes >= EXTERNAL_DATA_BYTES:
            raise ArtifactError(
                f"weights of {self.weight_bytes} bytes do not fit into one protobuf; save the model"
            )
        data: bytes = _imported("onnx_ir").to_proto(self.model).SerializeToString()
        return data


def to_onnx(
    source: ModuleSource, function: str | None = None, *, weights_as_inputs: bool = False
) -> OnnxProgram:
    """Return a function of a module as an ONNX model.

    Args:
        source: The module.
        function: The function; None: the only entry point.
        weights_as_inputs: Make the weights inputs of the model; else they are in it.

    Raises:
        MissingDependencyError: `onnx` or `onnxscript` is not installed.
        UnsupportedOpError: Operators that have no form in ONNX; all of them.
        DynamicShapeError: A size would be fixed that may vary.
        ExportError: There is no such function, or it is not clear which is meant.
        ParameterError: External parameters are missing, or of another type or shape.
    """
    for package in _PACKAGES:
        _imported(package)
    name = function or _only_entry_point(source)
    raised = raise_function(source, name, weights_as_inputs=weights_as_inputs, effects=False)
    _refuse_complex_numbers(raised)
    model = _converted(raised, reexport(raised))
    _name_dimensions(model, raised)
    return OnnxProgram(
        name=name,
        model=model,
        signature=raised.signature,
        inputs=raised.inputs,
        outputs=raised.outputs,
        initial_state=raised.initial_state,
        parameters=raised.parameters,
    )


def _refuse_complex_numbers(raised: Raised) -> None:
    """Refuse complex inputs and outputs; torch.onnx gives them a dimension more, of size 2."""
    for what, ports in (("input", raised.inputs), ("output", raised.outputs)):
        found = [f"{port.name!r} is {port.dtype}" for port in ports if port.dtype.is_complex]
        if found:
            raise UnsupportedOpError(
                f"{raised.name}(): ONNX has no operators for complex numbers, and {what} "
                f"{', '.join(found)}; export a function of real tensors, as torch.view_as_real "
                "and torch.view_as_complex convert them"
            )


def _only_entry_point(source: ModuleSource) -> str:
    names = source.entry_points()
    if len(names) != 1:
        raise ExportError(
            f"the module has {len(names)} entry points, an ONNX model has one; name the function: "
            f"{', '.join(names)}"
        )
    return names[0]


def _imported(package: str) -> Any:
    if importlib.util.find_spec(package) is None:
        raise MissingDependencyError(
            f"ONNX needs {package}, which is not installed: pip install 'pelton[onnx]'"
        )
    return importlib.import_module(package)


def _converted(raised: Raised, program: ExportedProgram) -> Any:
    with TRACING_LOCK, tracing_settings(), nested_subgraphs():
        try:
            converted = torch.onnx.export(
                program,
                dynamo=True,
                opset_version=OPSET,
                optimize=False,
                verbose=False,
                input_names=[port.name for port in raised.inputs],
                output_names=[port.name for port in raised.outputs],
            )
        except torch.onnx.errors.OnnxExporterError as error:
            raise _conversion_error(raised, program, error) from error
    assert converted is not None
    optimize(converted.model)
    graph = converted.model.graph
    for port, value in zip(raised.inputs, graph.inputs, strict=False):
        value.name = port.name  # one that is a result as well was called after the result
    for kind, ports, values in (
        ("inputs", raised.inputs, graph.inputs),
        ("outputs", raised.outputs, graph.outputs),
    ):
        wanted, found = [port.name for port in ports], [value.name for value in values]
        if found != wanted:
            raise ExportError(f"{raised.name}(): ONNX has the {kind} {found}, expected {wanted}")
    return converted.model


def _conversion_error(raised: Raised, program: ExportedProgram, error: Exception) -> ExportError:
    try:
        missing = unsupported_operators(program)
    except Exception as second:  # torch cannot decompose the program; `error` says why
        _LOG.debug("the operators without a form are not known: %s", second)
        missing = []
    if missing:
        return UnsupportedOpError(
            f"{raised.name}(): operators that have no form in ONNX: {', '.join(missing)}",
            operators=tuple(missing),
        )
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    reason, _, where = " ".join(str(cause).split()).partition(" While executing ")
    operator = operator_in_trace(where)
    reason = _NOT_CONSTANT.sub(r"it needs a number, and \1 depends on sizes or values", reason)
    return UnsupportedOpError(
        f"{raised.name}() cannot be converted to ONNX: {f'{operator}: ' if operator else ''}"
        f"{reason[:400]}; write it with other operators, or compile for another target",
        operators=(operator,) if operator else (),
        location=location_in_trace(str(cause)),
    )


def unsupported_operators(program: ExportedProgram) -> list[str]:
    """Return the operators that torch.onnx has no form for, after its own decompositions."""
    missing = map(str, operators_without_form(program, OPSET))
    return list(dict.fromkeys(name for name in missing if not name.startswith(_LEFT_OUT)))


def _name_dimensions(model: Any, raised: Raised) -> None:
    """Give the symbolic sizes in a model the names that the user knows."""
    names: dict[str, str] = {}
    for port, value in zip(raised.inputs, model.graph.inputs, strict=True):
        for size, found in zip(port.shape, value.shape or (), strict=True):
            symbol = str(getattr(found, "value", ""))
            if isinstance(size, str) and symbol.isidentifier():
                names[symbol] = size
    for value in _values(model.graph):
        if value.shape is not None:
            value.shape = _renamed(value.shape, names)
    for ports, values in (
        (raised.inputs, model.graph.inputs),
        (raised.outputs, model.graph.outputs),
    ):
        for port, value in zip(ports, values, strict=True):
            _state_shape(port, value)


def _values(graph: Any) -> Iterable[Any]:
    yield from graph.inputs
    for node in graph.all_nodes():
        yield from node.outputs


def _renamed(shape: Any, names: Mapping[str, str]) -> Any:
    def rename(size: Any) -> Any:
        text = getattr(size, "value", size)
        if not isinstance(text, str):
            return text
        return re.sub(r"[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), text)

    return type(shape)([rename(size) for size in shape])


def _state_shape(port: Port, value: Any) -> None:
    """State the shape that the signature has for an input or output, where it knows it."""
    if port.is_scalar or any(UNKNOWN in names_in(size) for size in port.shape):
        return
    sizes = [size if is_static(size) else render(size) for size in port.shape]
    value.shape = type(value.shape)(sizes)
