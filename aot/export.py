"""`export`: a model or function in, one MLIR module out."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from iree.compiler.ir import Operation, StringAttr
from torch.export import ExportedProgram

from pelton.runtime.call.signature import ConstantSpec, Signature
from pelton.runtime.files import StrPath
from pelton.runtime.progress import stage

from .capture.eager_program import EagerProgram
from .capture.program import Program
from .capture.programs.fx_programs import STATE_PREFIX, FxPrograms
from .capture.prune_constants import without_constants
from .capture.signature import signature_of_capture, signature_of_program, with_constraints_of
from .capture.trace import TRACING_LOCK, capture
from .decompositions import current_aot_decompositions
from .decompositions.legalize_program import prepare
from .ir.builder import ExternalParameter, ModuleBuilder, ModuleBuilderOptions
from .ir.input_aliasing import state_in_place_use
from .ir.module import new_module, read_module, set_signature
from .ir.state_accessors import add_state_accessors, state_name
from .lowering.custom.expand import expand_custom_ops
from .lowering.importer import import_program
from .lowering.parameter_names import ExternalParameters, ProgramTensors
from .output import ExportOutput
from .procedural.module.compiled_module import CompiledModule
from .spec.errors import ExportError, warn_user
from .spec.profiles import Profiles, with_profiles
from .spec.tensor_traits import DeviceAffinity


@dataclasses.dataclass
class Exported:
    """A finished module: the thing that an `ExportOutput` holds.

    Attributes:
        module_op: The module.
        external_parameters: The parameters that it takes from archives.
        resources: The data of globals that lies in the module, by its name there.
        eager: What each entry point was exported from, as far as it can be called.
    """

    module_op: Operation
    external_parameters: Sequence[ExternalParameter] = ()
    resources: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    eager: Mapping[str, EagerProgram] = dataclasses.field(default_factory=dict)


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
            return _export_programs(builder, mdl, decompositions, external_parameters)
        if isinstance(mdl, ExportedProgram):
            traced = _from_program(mdl, decompositions, name)
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
        return assemble(builder, traced, mdl, external_parameters, profiles)


@dataclasses.dataclass
class Traced:
    """A program in the importer's form.

    Attributes:
        program: The program.
        signature: What it takes and gives.
        prefix: What the names of its parameters start with beyond the user's names.
        arg_device: The device of each flat argument, by its position.
        eager: What it was traced from, if that can be called.
    """

    program: Program
    signature: Signature
    prefix: str = ""
    arg_device: Mapping[int, DeviceAffinity] | None = None
    eager: EagerProgram | None = None


def trace_callable(
    mdl: torch.nn.Module | Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any = None,
    *,
    name: str = "main",
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
    strict: bool = False,
    pure: bool = False,
) -> Traced:
    """Trace a module or function and bring it into the importer's form.

    Args:
        mdl: The module or function.
        args: Positional arguments: tensors, specs, constants.
        kwargs: Keyword arguments of the same kinds.
        dynamic_shapes: Which sizes are dynamic, as for `torch.export.export`.
        name: The entry point's name.
        decompositions: The operators to decompose, in place of the current table.
        strict: Trace with torch.export's strict mode.
        pure: As for `capture`; constants then leave the signature.

    Raises:
        ExportError: The program cannot be traced, or is not pure where it must be.
    """
    with stage("torch.export"):
        captured = capture(mdl, args, kwargs, dynamic_shapes, strict=strict, pure=pure)
    _warn_of_training(mdl)
    with stage("decomposing operators"):
        program = prepare(captured.program, decompositions)
    signature = signature_of_capture(captured, program, name)
    if pure:
        signature = without_constants(signature, captured.arguments)
    eager = EagerProgram(mdl, captured.arguments, decompositions or current_aot_decompositions())
    return Traced(program, signature, captured.prefix, eager=eager)


def assemble(
    builder: ModuleBuilder,
    traced: Traced,
    mdl: Any,
    external_parameters: ExternalParameters = None,
    profiles: Profiles | None = None,
) -> ExportOutput:
    """Finish a module whose only entry point is a traced program.

    Args:
        builder: The module under construction.
        traced: The program.
        mdl: What it was traced from; a module's tensors may be marked as external.
        external_parameters: Which parameters the module takes from an archive, as for `export`.
        profiles: Alternative sets of bounds, as for `export`.
    """
    if profiles is not None:
        traced.signature = with_profiles(traced.signature, profiles)
    owner = getattr(mdl, "__self__", mdl)  # of a bound method, its module
    module = owner if isinstance(owner, torch.nn.Module) else None
    return _finish(builder, [traced], external_parameters, module)


def _finish(
    builder: ModuleBuilder,
    entries: Sequence[Traced],
    external_parameters: ExternalParameters,
    module: torch.nn.Module | None,
) -> ExportOutput:
    """Import programs, with the tensors mutable that any of them changes, and finish the module."""
    mutable = [tensor for traced in entries for _, tensor in traced.program.mutated_buffers()]
    for traced in entries:
        tensors = ProgramTensors(traced.program, external_parameters, traced.prefix, module)
        _add_entry_point(builder, traced, tensors, mutable)
    expand_custom_ops(builder.module_op)
    add_state_accessors(builder)
    state_in_place_use(builder)
    builder.finalize_construct()
    eager = {entry.signature.name: entry.eager for entry in entries if entry.eager is not None}
    built = Exported(builder.module_op, builder.external_parameters, builder.resources, eager)
    return ExportOutput(None, built)


def _refuse_others(mdl: FxPrograms, given: bool) -> None:
    if given:
        raise ExportError(
            f"{mdl!r} has its arguments, sizes and names from export_program; export it without "
            "args, kwargs, dynamic_shapes, function_name, arg_device and profiles"
        )


def _export_programs(
    builder: ModuleBuilder,
    mdl: FxPrograms,
    decompositions: Mapping[Any, Callable[..., Any]] | None,
    external_parameters: ExternalParameters,
) -> ExportOutput:
    if not mdl.programs:
        raise ExportError("there are no programs to export; add some by export_program")
    _warn_of_training(mdl.root_module)
    entries = []
    for program in mdl.programs.values():
        with stage(f"decomposing operators of {program.signature.name}"):
            prepared = prepare(program.target, decompositions)
        signature = with_constraints_of(program.signature, program.target, program.oblivious)
        devices = _of_inputs(program.arg_device, signature)
        entries.append(Traced(prepared, signature, STATE_PREFIX, devices))
    return _finish(builder, entries, external_parameters, mdl.root_module)


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
    output = ExportOutput(None, Exported(module_op))
    output._loaded_from = Path(path)
    return output


def _from_program(
    exported: ExportedProgram, decompositions: Mapping[Any, Any] | None, name: str
) -> Traced:
    program = prepare(exported, decompositions)
    return Traced(program, signature_of_program(exported, program, name))


def _add_entry_point(
    builder: ModuleBuilder,
    traced: Traced,
    tensors: ProgramTensors,
    mutable: Sequence[torch.Tensor],
) -> None:
    function = import_program(
        builder,
        traced.program,
        name=traced.signature.name,
        mutable=mutable,
        name_of=tensors.name_of,
        attributes_of=tensors.attributes,
        arg_device=traced.arg_device,
    )
    changed = [tensor for _, tensor in traced.program.mutated_buffers()]
    mutates = tuple(state_name(builder.globals[id(tensor)].symbol) for tensor in changed)
    signature = dataclasses.replace(traced.signature, mutates=mutates)
    set_signature(function, signature)


def _of_inputs(
    devices: Mapping[int, DeviceAffinity] | None, signature: Signature
) -> dict[int, DeviceAffinity]:
    """Return the devices by position among the inputs, from those by flat argument."""
    leaves = enumerate(signature.inputs)
    places = [index for index, leaf in leaves if not isinstance(leaf, ConstantSpec)]
    return {places.index(index): device for index, device in (devices or {}).items()}


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
        warn_user(
            f"exporting in training mode: {', '.join(active[:3])} act differently in eval(); "
            "call model.eval() first unless that is wanted"
        )
