"""`export`: a model or function in, one MLIR module out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from iree.compiler.ir import StringAttr
from torch.export import ExportedProgram

from pelton.runtime.files import StrPath

from .capture.programs.fx_programs import FxPrograms
from .capture.trace import TRACING_LOCK
from .ir.builder import ModuleBuilder, ModuleBuilderOptions
from .ir.exported import ExportedModule
from .ir.module import new_module, read_module
from .lowering.custom.expand import expand_custom_ops
from .lowering.parameter_names import ExternalParameters
from .lowering.program_module import assemble, export_programs, trace_callable, traced_program
from .output import ExportOutput
from .procedural.module.compiled_module import CompiledModule
from .spec.errors import ExportError
from .spec.profiles import Profiles
from .spec.tensor_traits import DeviceAffinity


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
    arg_device: Mapping[int, DeviceAffinity] | None = None,
    profiles: Profiles | None = None,
) -> ExportOutput:
    """Export a program to one MLIR module.

    Args:
        mdl: An `nn.Module`, a function of tensors, a `CompiledModule` class, an `ExportedProgram`,
            `FxPrograms`, or the path of a `.mlir` or `.mlirbc` file.
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
        arg_device: The device of each flat input, by its position, constants not counted.
        profiles: Several sets of bounds, of which a call must fit one: `{"prompt": {"length":
            (16, 128, 512)}, "token": {"length": 1}}`, or a sequence of such without names.

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
    if isinstance(mdl, type) and issubclass(mdl, CompiledModule):
        other = args or example_args or kwargs or function_name or arg_device
        return _export_class(mdl, module_name, other)
    options = ModuleBuilderOptions(import_symbolic_shape_expressions)
    builder = ModuleBuilder(new_module(module_name or "module"), options=options)
    with TRACING_LOCK:
        if isinstance(mdl, FxPrograms):
            others = args or example_args or kwargs or dynamic_shapes or function_name or arg_device
            _refuse_others(mdl, bool(others or profiles))
            return _output(export_programs(builder, mdl, decompositions, external_parameters))
        if isinstance(mdl, ExportedProgram):
            traced = traced_program(mdl, decompositions, name)
        elif isinstance(mdl, torch.nn.Module) or (callable(mdl) and not isinstance(mdl, type)):
            traced = trace_callable(
                mdl,
                args or example_args,
                kwargs or {},
                dynamic_shapes,
                name=name,
                decompositions=decompositions,
                strict=strict_export,
            )
        else:
            raise ExportError(
                f"cannot export {mdl!r}: not a supported type; pass an nn.Module instance, a "
                "function, an ExportedProgram, FxPrograms, or the path of an MLIR file"
            )
        traced.arg_device = arg_device
        return _output(assemble(builder, traced, mdl, external_parameters, profiles))


def _refuse_others(mdl: FxPrograms, given: bool) -> None:
    if given:
        raise ExportError(
            f"{mdl!r} has its arguments, sizes and names from export_program; export it without "
            "args, kwargs, dynamic_shapes, function_name, arg_device and profiles"
        )


def _export_class(mdl: type[CompiledModule], module_name: str | None, other: Any) -> ExportOutput:
    if other:
        raise ExportError(
            f"{mdl.__qualname__} is a CompiledModule, whose methods say what they take; export it "
            "without args, kwargs and function_name; the devices of arguments are said by "
            "CompiledModule.signature_info"
        )
    instance = mdl()
    if module_name is not None:
        with instance.module_op.context:
            instance.module_op.attributes["sym_name"] = StringAttr.get(module_name)
    return ExportOutput(None, instance)


def _load(path: StrPath) -> ExportOutput:
    module_op = read_module(path)
    expand_custom_ops(module_op, refuse_unknown=False)
    return _output(ExportedModule(module_op, file=Path(path)))


def _output(exported: ExportedModule) -> ExportOutput:
    return ExportOutput(None, exported)
