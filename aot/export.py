"""`export`: a model or function in, one MLIR module out."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from iree.compiler.ir import Operation
from pelton.runtime.files import StrPath
from pelton.runtime.signature import SIGNATURE_KEY, Signature
from torch.export import ExportedProgram

from .builder import ExternalParameter, GlobalAttributes, ModuleBuilder, ModuleBuilderOptions
from .capture import TRACING_LOCK, capture
from .errors import ExportError
from .externalize import external_tensors
from .importer import StateName, import_program, set_reflection
from .mlir_module import new_module, read_module
from .normalize import Program
from .output import ExportOutput
from .prepare import prepare
from .signatures import signature_of_capture, signature_of_program
from .state import add_state_accessors, state_name

ExternalParameters = bool | str | Callable[[str], bool] | None
"""Which parameters leave the module: all, all under a scope, those that a function picks, or as
their `ExternalTensorTrait` says."""


@dataclasses.dataclass
class Exported:
    """A finished module: the thing that an `ExportOutput` holds.

    Attributes:
        module_op: The module.
        external_parameters: The parameters that it takes from archives.
    """

    module_op: Operation
    external_parameters: Sequence[ExternalParameter] = ()


def export(
    mdl: Any,
    /,
    *example_args: Any,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    module_name: str | None = None,
    function_name: str | None = None,
    strict_export: bool = False,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
    import_symbolic_shape_expressions: bool = True,
    external_parameters: ExternalParameters = None,
    arg_device: Mapping[int, Any] | None = None,
) -> ExportOutput:
    """Export a program to one MLIR module.

    Args:
        mdl: An `nn.Module`, a function of tensors, an `ExportedProgram`, or the path of a `.mlir`
            or `.mlirbc` file.
        example_args: Positional arguments; the short form of `args`.
        args: Positional arguments. Tensors, `InputInfo` and `DimensionInputInfo` (also within
            lists, tuples, dicts and dataclasses) become inputs; other values are constants.
        kwargs: Keyword arguments of the same kinds.
        dynamic_shapes: Which sizes are dynamic, by parameter name or position, as for
            `torch.export.export`; sizes may also be given by a name or a `NamedDimension`.
        module_name: Name of the MLIR module; default `module`.
        function_name: Name of the entry point; default `main`.
        strict_export: Trace with torch.export's strict mode.
        decompositions: The operators to decompose, in place of the current table.
        import_symbolic_shape_expressions: State in the module how sizes relate.
        external_parameters: Which parameters and persistent buffers the module takes from an
            archive when it is loaded: True, the name of their scope, or a function that picks
            them by `state_dict` key.
        arg_device: The device of each flat input, by its position.

    Returns:
        The module, to be saved, compiled and inspected.

    Raises:
        ExportError: `mdl` is of an unknown kind, or the program cannot be traced.
        DynamicShapeError: A size that was asked to be dynamic would have to be fixed.
        UnsupportedOpError: Operators have no lowering; names all of them with the user's lines.

    Example:
        >>> out = export(torch.nn.Linear(4, 2), args=(torch.zeros(3, 4),))
        >>> print(out.signatures["main"])
        main(input: float32[3, 4]) -> (float32[3, 2])
    """
    if isinstance(mdl, (str, os.PathLike)):
        return _load(mdl)
    if example_args and args is not None:
        raise ExportError("positional example arguments and args= were both given; use one")
    name = function_name or "main"
    options = ModuleBuilderOptions(import_symbolic_shape_expressions)
    builder = ModuleBuilder(new_module(module_name or "module"), options=options)
    with TRACING_LOCK:
        if isinstance(mdl, ExportedProgram):
            program, signature, prefix = _from_program(mdl, decompositions, name)
        elif isinstance(mdl, torch.nn.Module) or (callable(mdl) and not isinstance(mdl, type)):
            captured = capture(
                mdl, args or example_args, kwargs or {}, dynamic_shapes, strict=strict_export
            )
            _warn_of_training(mdl)
            program = prepare(captured.program, decompositions)
            signature = signature_of_capture(captured, program, name)
            prefix = captured.prefix
        else:
            raise ExportError(
                f"cannot export {mdl!r}: not a supported type; pass an nn.Module instance, a "
                "function, an ExportedProgram, or the path of an MLIR file"
            )
        module = mdl if isinstance(mdl, torch.nn.Module) else None
        attributes_of = _attributes_of(external_parameters, program, prefix, module)
        _add_entry_point(builder, program, signature, prefix, attributes_of)
    add_state_accessors(builder)
    builder.finalize_construct()
    return ExportOutput(None, Exported(builder.module_op, builder.external_parameters))


def _load(path: StrPath) -> ExportOutput:
    output = ExportOutput(None, Exported(read_module(path)))
    output._loaded_from = Path(path)
    return output


def _from_program(
    exported: ExportedProgram, decompositions: Mapping[Any, Any] | None, name: str
) -> tuple[Program, Signature, str]:
    program = prepare(exported, decompositions)
    return program, signature_of_program(exported, program, name), ""


def _add_entry_point(
    builder: ModuleBuilder,
    program: Program,
    signature: Signature,
    prefix: str,
    attributes_of: Callable[[str, torch.Tensor], GlobalAttributes],
) -> None:
    def name_of(qualified: str) -> StateName:
        name = qualified.removeprefix(prefix)
        return StateName(f"__auto.{name}", name)

    changed = program.mutated_buffers()
    function = import_program(
        builder,
        program,
        name=signature.name,
        mutable=[tensor for _, tensor in changed],
        name_of=name_of,
        attributes_of=attributes_of,
    )
    mutates = tuple(state_name(name_of(name).symbol) for name, _ in changed)
    signature = dataclasses.replace(signature, mutates=mutates)
    set_reflection(function, {SIGNATURE_KEY: signature.to_json()})


def _attributes_of(
    external: ExternalParameters, program: Program, prefix: str, module: torch.nn.Module | None
) -> Callable[[str, torch.Tensor], GlobalAttributes]:
    """Return what gives the attributes of a tensor's global by its `state_dict` key."""
    scope = external if isinstance(external, str) else None
    persistent = {name.removeprefix(prefix) for name in program.state_dict}
    traits = external_tensors(module) if module is not None else {}

    def attributes(name: str, tensor: torch.Tensor) -> GlobalAttributes:
        trait = traits.get(name)
        if trait is not None:
            return GlobalAttributes(
                external=True,
                external_scope=scope or trait.external_scope or None,
                name_mapper=lambda _: trait.external_name,
            )
        if external is None or name not in persistent:
            return GlobalAttributes()
        picked = external(name) if callable(external) else bool(external)
        return GlobalAttributes(external=picked, external_scope=scope)

    return attributes


def _warn_of_training(mdl: Any) -> None:
    """Say when a layer that acts differently in training is exported in training mode."""
    if not isinstance(mdl, torch.nn.Module):
        return
    kinds = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)
    active = [
        name
        for name, module in mdl.named_modules()
        if module.training and isinstance(module, kinds)
    ]
    if active:
        warnings.warn(
            f"exporting in training mode: {', '.join(active[:3])} act differently in eval(); "
            "call model.eval() first unless that is wanted",
            stacklevel=3,
        )
