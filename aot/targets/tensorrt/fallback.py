"""Functions that TensorRT cannot take, compiled with IREE into the same package."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from iree.compiler.ir import Operation, StringAttr

from pelton.runtime.artifacts.entry_points import EntryPoint, Port, Role, member_name
from pelton.runtime.call.signature import STATE_GET, STATE_SET
from pelton.runtime.progress import stage

from ...ir.exported import ExportedModule
from ...raising.fx import FUNCTIONS, ModuleSource, raise_function, symbol_of
from ...spec.errors import UnsupportedOpError
from ..iree.target import IreeTarget
from .bounds import profiled
from .functions import Built
from .options import TensorRTOptions

_GPU = IreeTarget("cuda", backend="cuda")
_CPU = IreeTarget("cpu", backend="llvm-cpu")


def built_by_iree(
    exported: ExportedModule,
    source: ModuleSource,
    name: str,
    capability: str,
    options: TensorRTOptions,
    folder: Path,
    reason: UnsupportedOpError,
) -> Built:
    """Return an entry point compiled with IREE for CUDA.

    Args:
        exported: The module.
        source: The same, ready to be raised.
        name: The entry point.
        capability: The least compute capability of the package's GPUs.
        options: The user's options.
        folder: Where files may be put.
        reason: Why TensorRT does not run it.

    Raises:
        CompileError: IREE failed as well.
    """
    raised = raise_function(source, name, weights_as_inputs=True, effects=False)
    alone = dataclasses.replace(exported, module_op=_only(exported.module_op, name))
    files: dict[Role, Path] = {"fallback": folder / "cuda.vmfb"}
    with stage(f"{name}: compiling with IREE for cuda"):
        cuda = _GPU.options({"arch": f"sm_{capability.replace('.', '')}"})
        _GPU.build(alone, files["fallback"], cuda)
    if options.reference:
        files["fallback_reference"] = folder / "cpu.vmfb"
        with stage(f"{name}: compiling with IREE for the reference device"):
            _CPU.build(alone, files["fallback_reference"], _CPU.options({}))
    # IREE holds the weights that are in the module; those of archives are given to it.
    kept = [port for port in raised.inputs if port.kind != "parameter" or "::" in port.origin]
    origins = {port.name: port.origin for port in kept if port.kind == "parameter"}
    return Built(
        entry_point=EntryPoint(
            signature=profiled(raised.signature, options.profiles),
            inputs=tuple(map(Port.of, kept)),
            outputs=tuple(map(Port.of, raised.outputs)),
            members={role: member_name(role, name) for role in files},
            notes=(f"runs with IREE: {reason}",),
        ),
        members={member_name(role, name): path for role, path in files.items()},
        state=raised.initial_state,
        parameters={origins[key]: raised.parameters[key] for key in origins},
    )


def _only(module_op: Operation, name: str) -> Operation:
    """Return a copy of a module with one entry point; what gives access to state stays."""
    copy = module_op.clone()
    with copy.context:
        for view in copy.regions[0].blocks[0].operations:
            op = view.operation
            if op.name not in FUNCTIONS:
                continue
            symbol = symbol_of(op)
            if symbol != name and not symbol.startswith((STATE_GET, STATE_SET)):
                op.attributes["sym_visibility"] = StringAttr.get("private")
    return copy
