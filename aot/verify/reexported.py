"""Parts of a program, exported and compiled on their own to observe intermediate values."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule, Node

from pelton.runtime.call.signature import ConstantSpec, ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import Dim, evaluate
from pelton.runtime.executable import load

from ..capture.arguments import flatten_arguments
from ..capture.eager_program import EagerProgram
from ..capture.trace import capture_call, tracing_settings
from ..ir.exported import ExportedModule
from ..lowering.program_module import module_of_program
from ..raising.fx import Port, Raised
from ..raising.reexport import UNBOUNDED, reexport
from ..spec.errors import ExportError, PeltonError
from ..spec.inputs import DimensionInputInfo, InputInfo, NamedDimension

Build = Callable[[ExportedModule, Path], None]
"""Compiles a module to a file, as the artifact that is looked at was compiled."""

Decompositions = Mapping[Any, Callable[..., Any]] | None
"""A table of decompositions, as `export` takes it; None: the current one."""


def flat_program(eager: EagerProgram, signature: Signature) -> Raised:
    """Return the graph that torch.export makes of a program, before anything of ours.

    Args:
        eager: The program.
        signature: Of its entry point.

    Raises:
        ExportError: It cannot be traced.
    """
    captured = capture_call(eager.find(), eager.arguments)
    with tracing_settings():
        module = captured.program.module(check_guards=False)
    _copy_buffers(module)
    leaves = [
        (path, leaf)
        for path, leaf in signature.named_inputs()
        if not isinstance(leaf, ConstantSpec)
    ]
    return Raised(signature.name, module, signature, tuple(_port(*leaf) for leaf in leaves), ())


def _copy_buffers(module: torch.nn.Module) -> None:
    """Give a module, whose buffers are the user's and which may write to them, copies of them."""
    copies: dict[torch.Tensor, torch.Tensor] = {}
    for part in module.modules():
        for name, buffer in [*part.named_buffers(recurse=False)]:
            if buffer not in copies:
                copies[buffer] = buffer.detach().clone()
            setattr(part, name, copies[buffer])


def eager_program(program: Any, signature: Signature, sizes: Mapping[str, int]) -> EagerProgram:
    """Return a module or function with arguments as a signature says, ready to be traced.

    Args:
        program: The module or function.
        signature: What it takes; sizes that are expressions of dimensions are taken as fixed.
        sizes: The values of the dimensions.

    Raises:
        ExportError: The arguments do not fit it.
    """
    dims = {dim.name: _dimension(dim, sizes[dim.name]) for dim in signature.dims}
    specs = [
        _spec(leaf, dims, sizes) for leaf in signature.inputs if not isinstance(leaf, ConstantSpec)
    ]
    args, kwargs = signature.call_form(specs)
    function = getattr(program, "forward", program)
    return EagerProgram(program, flatten_arguments(function, args, kwargs, None))


def _dimension(dim: Dim, size: int) -> NamedDimension:
    return NamedDimension(dim.name, dim.min, size, UNBOUNDED if dim.max is None else dim.max)


def _spec(leaf: Any, dims: Mapping[str, NamedDimension], sizes: Mapping[str, int]) -> Any:
    if isinstance(leaf, TensorSpec):
        shape = [dims.get(str(size), evaluate(size, sizes) or 0) for size in leaf.shape]
        return InputInfo(shape, getattr(torch, leaf.dtype.name))
    size = dims.get(str(leaf.size))
    if leaf.kind != "int" or size is None:
        raise ExportError(f"an input number ({leaf}) has no form as a spec")
    return DimensionInputInfo((size.min, size.opt, size.max))


def _port(path: str, leaf: Any) -> Port:
    if isinstance(leaf, TensorSpec):
        return Port(path, "user", path, getattr(torch, leaf.dtype.name), leaf.shape)
    assert isinstance(leaf, ScalarSpec)
    dtype = {"int": torch.int64, "float": torch.float64, "bool": torch.bool}[leaf.kind]
    return Port(path, "user", path, dtype, (), is_scalar=True, size=leaf.size)


def tensor_nodes(program: Raised, inputs: Sequence[Any]) -> list[tuple[Node, torch.Tensor]]:
    """Return the calls of a graph whose values are tensors, with the values for some inputs.

    Args:
        program: The graph.
        inputs: Its inputs.
    """
    with torch.no_grad(), tracing_settings():
        recorder = _Recorder(program.graph_module)
        recorder.run(*inputs)
    return [
        (node, recorder.values[node])
        for node in program.graph_module.graph.nodes
        if node.op == "call_function" and node in recorder.values
    ]


class _Recorder(torch.fx.Interpreter):
    """Runs a graph and keeps a copy of every tensor as it is when it is made."""

    def __init__(self, module: GraphModule) -> None:
        own = copy.deepcopy(module) if _writes(module) else module
        super().__init__(own)
        self.values: dict[Node, torch.Tensor] = {}
        self._original = dict(zip(own.graph.nodes, module.graph.nodes, strict=True))

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if isinstance(value, torch.Tensor):
            self.values[self._original[n]] = value.detach().clone()
        return value


def _writes(module: GraphModule) -> bool:
    return any(True for _ in module.buffers())


def with_outputs(program: Raised, nodes: Sequence[Node]) -> Raised:
    """Return a graph with values within it as its results.

    Args:
        program: The graph.
        nodes: The calls whose values are wanted, each as it is when it is made.
    """
    graph = torch.fx.Graph()
    copies: dict[Node, Node] = {}
    outputs: dict[Node, Node] = {}
    for node in program.graph_module.graph.nodes:
        if node.op == "output":
            continue
        copies[node] = graph.node_copy(node, lambda n: copies[n])
        if node in nodes:
            clone = torch.ops.aten.clone.default
            outputs[node] = graph.call_function(clone, (copies[node],))
    graph.output(tuple(outputs[node] for node in nodes))
    graph.set_codegen(torch.fx.graph.CodeGen())  # flat inputs, whatever the graph had
    module = GraphModule(program.graph_module, graph)
    return dataclasses.replace(program, graph_module=module, outputs=())


def compiled_values(
    out: ExportedModule, inputs: Sequence[Any], build: Build, folder: Path
) -> list[Any]:
    """Return the values that a part of a program has when it is compiled.

    Args:
        out: The part, from `part_of`.
        inputs: The graph's inputs.
        build: Compiles modules.
        folder: A place for files.

    Raises:
        PeltonError: The part cannot be compiled or run.
    """
    path = folder / "part.vmfb"
    build(out, path)
    executable = load(path, parameters=out.parameters)
    (function,) = executable.functions.values()
    flat = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
    args, kwargs = function.signature.call_form(_used(function.signature, flat))
    return list(function(*args, **kwargs))


def part_of(
    program: Raised, nodes: Sequence[Node], decompositions: Decompositions = None
) -> ExportedModule:
    """Return the module of a graph that gives the values of calls within it.

    Args:
        program: The graph.
        nodes: The calls.
        decompositions: The operators to decompose, as for `export`.

    Raises:
        PeltonError: It cannot be exported.
    """
    return module_of_program(reexport(with_outputs(program, nodes)), decompositions)


def _used(signature: Signature, inputs: Sequence[Any]) -> Sequence[Any]:
    count = sum(not isinstance(leaf, ConstantSpec) for leaf in signature.inputs)
    if count != len(inputs):
        raise PeltonError(f"a part of the program takes {count} inputs, not {len(inputs)}")
    return inputs
