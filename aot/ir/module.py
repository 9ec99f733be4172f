"""MLIR modules: files, signatures, external parameters, devices, and a walker of operations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from iree.compiler.ir import (
    Context,
    DictAttr,
    IntegerAttr,
    Location,
    MLIRError,
    Module,
    Operation,
    StringAttr,
    Value,
    WalkResult,
)
from iree.compiler.passmanager import PassManager

from pelton.runtime.artifacts.vmfb import ParameterTable
from pelton.runtime.call.dtypes import BY_TORCH_MLIR, DTYPES, DType
from pelton.runtime.call.signature import SIGNATURE_KEY, Signature
from pelton.runtime.files import FileKind, StrPath, atomic_write, sniff

from ..spec.errors import ArtifactError, ExportError
from . import checksum
from .torch_types import TensorType

BYTECODE_SUFFIX = ".mlirbc"
"""Files of this suffix are written as bytecode, all others as text."""

CUSTOM_OP = "pelton.custom_op"
"""Attribute of a function that is the body of a custom operator: the operator's name."""

_CONVOLUTIONS = frozenset(
    f"torch.aten.{name}"
    for name in ("conv2d", "conv2d.padding", "convolution", "conv_transpose2d.input")
)

_DEVICE = re.compile(r"@__device_(\d+)\b")
_NAMING_DEVICES = (
    "iree.abi.affinity", "stream.affinity", "stream.affinity.default", "target", "arg_attrs",
    "res_attrs",
)  # fmt: skip
"""The attributes that may name devices of the program."""

NAMED_PARAMETER = re.compile(
    r'#flow\.parameter\.named<(?:"(?P<scope>[^"]*)"::)?"(?P<name>[^"]*)">'
    r"(?: : (?P<type>tensor<.*>)$)?"
)
"""An external parameter as the initial value of a global: its scope, name and tensor type."""


def read_module(path: StrPath) -> Operation:
    """Read an MLIR file, text or bytecode, in a context of its own.

    Raises:
        ArtifactError: There is no such file, or it is no valid MLIR; gives line and reason.
    """
    kind = sniff(path)
    if kind not in (FileKind.MLIR_TEXT, FileKind.MLIR_BYTECODE):
        raise ArtifactError(f"{path} is no MLIR module: its content is {kind.value}")
    context = Context()
    data = Path(path).read_bytes()
    checksum.check(Path(path), data)
    try:
        module_op = Module.parse(data, context).operation
        signatures_of(module_op)
        parameters_of(module_op)
    except (MLIRError, ValueError, RuntimeError, KeyError) as error:
        raise ArtifactError(f"{path} is no valid MLIR: {_diagnostics(error)}") from error
    return module_op


def write_module(module_op: Operation, path: StrPath) -> None:
    """Write a module, atomically: bytecode if the name ends in `.mlirbc`, else text.

    Raises:
        ArtifactError: The folder does not exist, or `path` is a folder.
    """
    with atomic_write(path) as file:
        if Path(path).suffix == BYTECODE_SUFFIX:
            writer = checksum.ChecksumWriter(file)
            module_op.write_bytecode(writer)
            writer.finish()
        else:
            module_op.print(file=file, binary=True, enable_debug_info=True)


def signatures_of(module_op: Operation) -> dict[str, Signature]:
    """Return the signature of each public function that states one, by name.

    Raises:
        ArtifactError: A signature is damaged.
    """
    found = {}
    for op in _operations(module_op, "func.func", "util.func"):
        attributes = op.attributes
        if "iree.reflection" not in attributes:
            continue
        reflection = DictAttr(attributes["iree.reflection"])
        if SIGNATURE_KEY in reflection:
            signature = Signature.from_json(StringAttr(reflection[SIGNATURE_KEY]).value)
            found[signature.name] = signature
    return found


def set_signature(function: Operation, signature: Signature) -> None:
    """State the signature of a function, where `signatures_of` and IREE's artifacts have it."""
    with function.context:
        text = StringAttr.get(signature.to_json())
        function.attributes["iree.reflection"] = DictAttr.get({SIGNATURE_KEY: text})


def parameters_of(module_op: Operation) -> ParameterTable:
    """Return element type and shape of each external parameter, by scope and name.

    Raises:
        ValueError: The type of one is not static.
        KeyError: The element type of one is unknown.
    """
    table: ParameterTable = {}
    for op in _operations(module_op, "util.global"):
        if "initial_value" not in op.attributes:
            continue
        match = NAMED_PARAMETER.match(str(op.attributes["initial_value"]))
        if match is None or match["type"] is None:
            continue
        tensor = TensorType.parse_builtin(match["type"])
        if tensor is None or not tensor.is_static:
            raise ValueError(f"external parameter {match['name']!r} has no static type: {match[0]}")
        stated = op.attributes["pelton.dtype"] if "pelton.dtype" in op.attributes else None
        dtype = DTYPES[StringAttr(stated).value] if stated is not None else _signed(tensor)
        shape = tuple(size for size in tensor.shape if size is not None)
        table.setdefault(match["scope"] or "", {})[match["name"]] = (dtype, shape)
    return table


def device_count(module_op: Operation) -> int:
    """Return how many devices a module is for; 0 if it names none and so runs on any one."""
    ordinals = [-1]
    for op in operations_within(module_op):
        if not op.name.startswith("torch."):
            for name in _NAMING_DEVICES:
                if name in op.attributes:
                    ordinals.extend(map(int, _DEVICE.findall(str(op.attributes[name]))))
    return max(ordinals) + 1


def run_passes(module_op: Operation, pipeline: str, enable_ir_printing: bool = False) -> None:
    """Run passes on a module.

    Args:
        module_op: The module, which is changed; where a pass fails, in an unknown state.
        pipeline: The passes in their text form, as `PassManager.parse` reads it.
        enable_ir_printing: Print the module to stderr after each pass.

    Raises:
        ExportError: The text is no pipeline, or a pass failed; has the diagnostics.
    """
    try:
        with module_op.context as context:
            manager = PassManager.parse(pipeline)
            if enable_ir_printing:
                context.enable_multithreading(False)  # MLIR prints modules in one thread only
                manager.enable_ir_printing()
            manager.run(module_op)
    except (MLIRError, ValueError) as error:
        raise ExportError(f"the passes {pipeline!r} failed: {_diagnostics(error)}") from error
    finally:
        if enable_ir_printing:
            module_op.context.enable_multithreading(True)


def is_lowered(module_op: Operation) -> bool:
    """Return whether a module is in IREE's input dialects, which have functions of their own."""
    return next(_operations(module_op, "func.func"), None) is None


def has_dynamic_sizes(module_op: Operation) -> bool:
    """Return whether a module has tensors with dynamic sizes."""
    operations = operations_within(module_op)
    return any("?" in str(value.type) for op in operations for value in _values(op))


def has_empty_sizes(module_op: Operation) -> bool:
    """Return whether a size that varies may be 0 in a module, which is in the torch dialect."""
    symbols = operations_within(module_op, "torch.symbolic_int")
    return any(IntegerAttr(symbol.attributes["min_val"]).value < 1 for symbol in symbols)


def has_dynamic_convolutions(module_op: Operation) -> bool:
    """Return whether a module convolves images whose width or height is dynamic.

    Args:
        module_op: The module, in the torch dialect.
    """
    convolutions = operations_within(module_op, *_CONVOLUTIONS)
    images = (TensorType.parse_torch(str(op.operands[0].type)) for op in convolutions)
    return any(image and len(image.shape) == 4 and None in image.shape[2:] for image in images)


def operations_within(op: Operation, *names: str) -> list[Operation]:
    """Return an operation and all within it, inner operations first.

    Args:
        op: The operation, which is one of those returned.
        names: Return operations of these names only; all, where there are none.
    """
    found: list[Operation] = []

    def visit(inner: Operation) -> WalkResult:
        if not names or inner.name in names:
            found.append(inner)
        return WalkResult.ADVANCE

    op.walk(visit)
    return found


def _values(op: Operation) -> Iterator[Value]:
    """Yield the values that an operation gives, or takes as a function."""
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.arguments


def module_name(module_op: Operation) -> str:
    """Return a module's name, or `module` where it has none."""
    attributes = module_op.attributes
    return StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else "module"


def new_module(name: str) -> Operation:
    """Return an empty module of a name, in a context of its own."""
    module = Module.create(Location.unknown(Context()))
    with module.context:
        module.operation.attributes["sym_name"] = StringAttr.get(name)
    return module.operation


def _operations(module_op: Operation, *names: str) -> Iterator[Operation]:
    for op in module_op.regions[0].blocks[0].operations:
        if op.operation.name in names:
            yield op.operation


def _signed(tensor: TensorType) -> DType:
    return BY_TORCH_MLIR.get(f"s{tensor.element}") or BY_TORCH_MLIR[tensor.element]


def _diagnostics(error: Exception) -> str:
    listed = getattr(error, "error_diagnostics", None)
    if listed:
        return "; ".join(f"{d.location}: {d.message}" for d in listed)[:600]
    return " ".join(str(error).split())[:600]
