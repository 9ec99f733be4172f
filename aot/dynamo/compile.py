"""Compilation of a graph of AOTAutograd to the function that is called in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule

from pelton.runtime.executable import load
from pelton.runtime.progress import stage

from ..capture.signature import signature_of_program
from ..capture.trace import TRACING_LOCK
from ..compat.dynamo import mark_boxed
from ..decompositions.legalize_program import legalize_program
from ..ir.builder import ModuleBuilder
from ..ir.exported import ExportedModule
from ..ir.module import new_module
from ..lowering.program_module import Traced, assemble
from ..spec.errors import CompileError, ExportError, UnsupportedOpError
from .compiled import GraphCall, Run, call_of
from .graph import PartitionedGraph, partition_graph
from .legalize import with_whole_attention, without_strides
from .notices import tell, tell_fallback
from .options import Options
from .random_numbers import Draws, draw_outside

_SMALL = 1 << 13
"""Elements below which a program is done sooner than threads could be woken for it."""


def compile_graph(module: GraphModule, _: Sequence[Any], *, options: Options) -> GraphCall:
    """Compile a graph of AOTAutograd.

    Args:
        module: The graph.
        options: What the user asked for.

    Returns:
        A function of the list of inputs: the compiled graph, or where that is not possible and a
        fallback allowed, the graph itself.

    Raises:
        UnsupportedOpError: Without fallback: operators have no lowering.
        ExportError: Without fallback: the graph cannot be compiled for another reason.
        CompileError: Without fallback: the compiler failed.
    """
    try:
        refuse_devices(module, options)
        with TRACING_LOCK:
            parts, draws = prepared(module)
            run, notes = _program(parts, options)
    except (ExportError, CompileError) as error:
        if not options.fallback:
            raise
        tell_fallback(module, error, options.target)
        interpreter = torch.fx.Interpreter(module)
        return mark_boxed(lambda arguments: interpreter.boxed_run(arguments))
    for note in notes:
        tell(module, note)
    return call_of(parts, run, draws)


def prepared(module: GraphModule) -> tuple[PartitionedGraph, Draws | None]:
    """Return the parts of a graph, and the random numbers that are drawn before each call.

    Args:
        module: A graph of AOTAutograd; it stays as it is.

    Raises:
        UnsupportedOpError: Something in it has no form in a compiled program.
    """
    plain, draws = draw_outside(with_whole_attention(without_strides(module)))
    return partition_graph(plain), draws


def module_of(program: ExportedProgram) -> ExportedModule:
    """Return the MLIR module of a program whose calls torch's guards check.

    Raises:
        UnsupportedOpError: Operators have no lowering.
        ExportError: It has no form in MLIR for another reason.
    """
    legal = legalize_program(program)
    signature = signature_of_program(program, legal, "main", guarded=True)
    return assemble(ModuleBuilder(new_module("module")), Traced(legal, signature), None)


def _program(parts: PartitionedGraph, options: Options) -> tuple[Run, Sequence[str]]:
    """Compile and load the program of a graph; return what calls it, and notes for the user."""
    if parts.program is None:
        return lambda _: [], ()
    exported = module_of(parts.program)
    small = options.device == "cpu" and is_small(parts.program.graph)
    with options.request.private_file() as path:
        with stage(f"compiling for {options.target}"):
            artifact = options.request.build(exported, path, private=True)
        executable = load(path, device="local-sync" if small else None)
    (function,) = executable.functions.values()
    return function.call_leaves, artifact.notes


def is_small(graph: Graph) -> bool:
    """Return whether a graph is so small that a thread of its own computes it faster than several.

    Args:
        graph: One whose values have known sizes and hold few elements together is.
    """
    elements = 0
    for tensor in _tensors(graph):
        if any(isinstance(size, torch.SymInt) for size in tensor.shape):
            return False
        elements += tensor.numel()
    return elements < _SMALL


def refuse_devices(module: GraphModule, options: Options) -> None:
    """Refuse a graph with tensors on another device than the target's.

    Raises:
        UnsupportedOpError: Names the devices.
    """
    devices = {tensor.device for tensor in _tensors(module.graph)}
    if len(devices) > 1 or any(device.type != options.device for device in devices):
        listed = ", ".join(sorted(map(str, devices)))
        raise UnsupportedOpError(
            f"the graph has tensors on {listed}; target {options.target!r} takes them on one "
            f"{options.device} device"
        )


def _tensors(graph: Graph) -> Iterator[torch.Tensor]:
    for node in graph.nodes:
        value = node.meta.get("val")
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor):
                yield item
