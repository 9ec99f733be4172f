"""The module of a program: captured programs lowered to functions, state accessors, aliasing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from pelton.runtime.call.signature import ConstantSpec, Signature
from pelton.runtime.progress import stage

from ..capture.eager_program import EagerProgram
from ..capture.program import Program
from ..capture.programs.fx_programs import STATE_PREFIX, FxPrograms
from ..capture.prune_constants import prune_constants
from ..capture.signature import signature_of_capture, signature_of_program, with_constraints_of
from ..capture.trace import TRACING_LOCK, capture
from ..compat.modules import TRAINING_LAYERS
from ..decompositions import current_aot_decompositions
from ..decompositions.legalize_program import legalize_program
from ..ir.builder import ModuleBuilder
from ..ir.exported import ExportedModule
from ..ir.module import new_module, set_signature
from ..ir.state_accessors import add_state_accessors, state_name
from ..spec.errors import ExportError
from ..spec.locations import warn_user
from ..spec.profiles import Profiles, with_profiles
from ..spec.tensor_traits import DeviceAffinity
from .custom.expand import expand_custom_ops
from .importer import import_program
from .parameter_names import ExternalParameters, ProgramTensors


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
    warn_of_training(mdl)
    with stage("decomposing operators"):
        program = legalize_program(captured.program, decompositions, prefix=captured.prefix)
    signature = signature_of_capture(captured, program, name)
    if pure:
        signature = prune_constants(signature, captured.arguments)
    eager = EagerProgram(mdl, captured.arguments, decompositions or current_aot_decompositions())
    return Traced(program, signature, captured.prefix, eager=eager)


def assemble(
    builder: ModuleBuilder,
    traced: Traced,
    mdl: Any,
    external_parameters: ExternalParameters = None,
    profiles: Profiles | None = None,
) -> ExportedModule:
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
) -> ExportedModule:
    """Import programs, with the tensors mutable that any of them changes, and finish the module."""
    mutable = [tensor for traced in entries for _, tensor in traced.program.mutated_buffers()]
    for traced in entries:
        tensors = ProgramTensors(traced.program, external_parameters, traced.prefix, module)
        _add_entry_point(builder, traced, tensors, mutable)
    expand_custom_ops(builder.module_op)
    add_state_accessors(builder)
    builder.finalize_construct()
    eager = {entry.signature.name: entry.eager for entry in entries if entry.eager is not None}
    return builder.exported(eager)


def export_programs(
    builder: ModuleBuilder,
    mdl: FxPrograms,
    decompositions: Mapping[Any, Callable[..., Any]] | None,
    external_parameters: ExternalParameters,
) -> ExportedModule:
    """Lower all programs of an `FxPrograms` to one module, with the state that they share.

    Args:
        builder: The module under construction.
        mdl: The programs.
        decompositions: The operators to decompose, in place of the current table.
        external_parameters: Which parameters the module takes from an archive, as for `export`.

    Raises:
        ExportError: There are none, or one has no form in MLIR.
    """
    if not mdl.programs:
        raise ExportError("there are no programs to export; add some by export_program")
    warn_of_training(mdl.root_module)
    entries = []
    for program in mdl.programs.values():
        with stage(f"decomposing operators of {program.signature.name}"):
            prepared = legalize_program(program.target, decompositions, prefix=STATE_PREFIX)
        signature = with_constraints_of(program.signature, program.target, program.oblivious)
        devices = _of_inputs(program.arg_device, signature)
        entries.append(Traced(prepared, signature, STATE_PREFIX, devices))
    return _finish(builder, entries, external_parameters, mdl.root_module)


def traced_program(
    exported: ExportedProgram,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
    name: str = "main",
) -> Traced:
    """Return an `ExportedProgram` in the importer's form.

    Args:
        exported: The program.
        decompositions: The operators to decompose; None: the current table.
        name: The name of its entry point.
    """
    program = legalize_program(exported, decompositions)
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


def warn_of_training(mdl: Any) -> None:
    """Say when a layer that acts differently in training is exported in training mode."""
    if not isinstance(mdl, torch.nn.Module):
        return
    active = [
        name
        for name, module in mdl.named_modules()
        if module.training and isinstance(module, TRAINING_LAYERS)
    ]
    if active:
        warn_user(
            f"exporting in training mode: {', '.join(active[:3])} act differently in eval(); "
            "call model.eval() first unless that is wanted"
        )


def module_of_program(
    program: ExportedProgram, decompositions: Mapping[Any, Callable[..., Any]] | None = None
) -> ExportedModule:
    """Return the module whose only entry point, `main`, is an `ExportedProgram`.

    Args:
        program: The program.
        decompositions: The operators to decompose; None: the current table.

    Raises:
        ExportError: It has no form in MLIR.
    """
    with TRACING_LOCK:
        return assemble(
            ModuleBuilder(new_module("module")), traced_program(program, decompositions), None
        )


def module_of_callable(
    function: Callable[..., Any],
    args: Sequence[Any],
    dynamic_shapes: Any = None,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
) -> ExportedModule:
    """Return the module whose only entry point, `main`, is a module or function.

    Args:
        function: The `nn.Module` or function.
        args: Its positional arguments: tensors, specs, constants.
        dynamic_shapes: Which sizes are dynamic, as for `torch.export.export`.
        decompositions: The operators to decompose; None: the current table.

    Raises:
        ExportError: It cannot be traced, or has no form in MLIR.
    """
    with TRACING_LOCK:
        traced = trace_callable(function, args, {}, dynamic_shapes, decompositions=decompositions)
        return assemble(ModuleBuilder(new_module("module")), traced, function)
