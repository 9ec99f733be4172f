"""Captured programs in the form that the importer reads.

Constants are dropped from torch's signature (ours states them), each changed buffer gets a producer
of its own at the end of the graph, and changes of the caller's tensors are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

from ..ir.elements import check_tensor
from ..spec.errors import ExportError
from ..spec.locations import location_of_node

STATE_KINDS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
"""The kinds of inputs that are tensors of the program itself."""


@dataclass
class Program:
    """A captured program, as the importer reads it.

    Attributes:
        graph_module: The module that owns the graph.
        graph: The graph.
        graph_signature: Inputs and outputs, without constants.
        state_dict: Parameters and persistent buffers.
        constants: Other tensors.
        range_constraints: The range of each symbol.
        inputs: The placeholders of the inputs at run time, in order.
        outputs: The results: a node, or a constant.
        changed_inputs: The inputs whose new values are the first of `outputs`.
    """

    graph_module: torch.fx.GraphModule
    graph: torch.fx.Graph
    graph_signature: ExportGraphSignature
    state_dict: dict[str, Any]
    constants: dict[str, Any]
    range_constraints: dict[Any, Any]
    inputs: list[torch.fx.Node]
    outputs: list[torch.fx.Node | ConstantArgument]
    changed_inputs: list[torch.fx.Node] = field(default_factory=list)

    def mutated_buffers(self) -> list[tuple[str, torch.Tensor]]:
        """Return the qualified name and tensor of each buffer that the program changes."""
        return [
            (str(spec.target), self.tensor(str(spec.target)))
            for spec in self.graph_signature.output_specs
            if spec.kind is OutputKind.BUFFER_MUTATION
        ]

    def tensor(self, qualified: str) -> torch.Tensor:
        """Return a parameter, buffer or constant by its qualified name."""
        found = self.state_dict.get(qualified, self.constants.get(qualified))
        assert isinstance(found, torch.Tensor), qualified
        return found


def refuse_unusable_tensors(program: ExportedProgram, prefix: str = "") -> None:
    """Refuse a program that uses a tensor of its own of a layout or type that has no form in MLIR.

    Args:
        program: The program.
        prefix: What the names of its tensors start with beyond the user's names.

    Raises:
        ExportError: Names the tensor, what it is, and the user's line that uses it.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    tensors = {**program.state_dict, **program.constants}
    for spec in program.graph_signature.input_specs:
        tensor = tensors.get(str(spec.target)) if spec.kind in STATE_KINDS else None
        if not isinstance(tensor, torch.Tensor):
            continue
        users = list(nodes[spec.arg.name].users)
        if users:
            name = str(spec.target).removeprefix(prefix)
            kind = spec.kind.name.lower().replace("_", " ")
            check_tensor(tensor, f"{kind} {name}", "use", location_of_node(users[0]))


def normalize(program: ExportedProgram, *, return_changed_inputs: bool = False) -> Program:
    """Return an exported program in the importer's form. The program's own graph is changed.

    Args:
        program: A functional program, such as `decompositions.legalize` returns.
        return_changed_inputs: Return the new values of changed inputs, before the results; else
            those values are dropped.

    Raises:
        ExportError: It has inputs or results of a kind that has no form in MLIR.
    """
    graph = program.graph
    nodes = {node.name: node for node in graph.nodes}
    signature = program.graph_signature
    inputs: list[torch.fx.Node] = []
    input_specs: list[InputSpec] = []
    for spec in signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            if isinstance(spec.arg, ConstantArgument):
                continue
            inputs.append(nodes[spec.arg.name])
        elif spec.kind in (InputKind.TOKEN, InputKind.CUSTOM_OBJ):
            raise ExportError(
                f"the program takes {spec.arg!r}, a {spec.kind.name.lower()}; only tensors and "
                "numbers can cross into a compiled function"
            )
        input_specs.append(spec)
    outputs: list[torch.fx.Node | ConstantArgument] = []
    changed: list[torch.fx.Node] = []
    output_specs: list[OutputSpec] = []
    for out in signature.output_specs:
        if out.kind is OutputKind.USER_INPUT_MUTATION:
            if not return_changed_inputs:
                continue
            changed.append(nodes[str(out.target)])
            out = OutputSpec(OutputKind.USER_OUTPUT, out.arg, None)
        if out.kind is OutputKind.BUFFER_MUTATION:
            producer = _own_producer(graph, nodes[out.arg.name])
            out = OutputSpec(out.kind, TensorArgument(producer.name), out.target)
        elif isinstance(out.arg, ConstantArgument):
            outputs.append(out.arg)
            continue
        elif out.kind is OutputKind.USER_OUTPUT:
            outputs.append(nodes[out.arg.name])
            if not isinstance(out.arg, TensorArgument):
                # The importer knows only integers; the value's own type decides what it emits.
                out = OutputSpec(out.kind, SymIntArgument(out.arg.name), out.target)
        else:
            raise ExportError(f"the program gives {out.arg!r}, a {out.kind.name.lower()}")
        output_specs.append(out)
    return Program(
        program.graph_module,
        graph,
        ExportGraphSignature(input_specs, output_specs),
        dict(program.state_dict),
        dict(program.constants),
        dict(program.range_constraints),
        inputs,
        outputs,
        changed,
    )


def inputs_and_outputs(program: ExportedProgram) -> Program:
    """Return a program's inputs and results for a look at them; its graph stays as it is.

    Args:
        program: A program over flat tensors and numbers, as `capture` returns it.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    signature = program.graph_signature
    return Program(
        program.graph_module,
        program.graph,
        signature,
        dict(program.state_dict),
        dict(program.constants),
        dict(program.range_constraints),
        [nodes[str(name)] for name in signature.user_inputs],
        [
            out.arg if isinstance(out.arg, ConstantArgument) else nodes[out.arg.name]
            for out in signature.output_specs
            if out.kind is OutputKind.USER_OUTPUT
        ],
    )


def _own_producer(graph: torch.fx.Graph, value: torch.fx.Node) -> torch.fx.Node:
    """Add a copy of a value at the end of the graph, so that storing it has a place of its own.

    A buffer may be given an input, another buffer, or a value that is stored twice.
    """
    with graph.inserting_before(graph.output_node()):
        copy = graph.call_function(torch.ops.aten.clone.default, (value,))
    copy.meta = dict(value.meta)
    return copy
