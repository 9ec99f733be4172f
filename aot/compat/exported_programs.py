"""Exported programs: with another graph, and torch's form of them in JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram


def with_graph(program: ExportedProgram, graph_module: torch.fx.GraphModule) -> ExportedProgram:
    """Return a program with another graph, whose signature, tensors and ranges stay.

    Args:
        program: The program; it stays as it is.
        graph_module: A graph with placeholders and outputs of the same names.
    """
    return program._update(graph_module, program.graph_signature)


def _serializer() -> Any:
    """Return torch's serializer; it loads TorchDynamo, which takes as long as all else of ours."""
    from torch._export.serde import serialize

    return serialize


def graph_to_json(program: ExportedProgram) -> bytes:
    """Return a program in torch's form in JSON, without its tensors."""
    written = _serializer().serialize(
        program,
        serialize_state_dict=False,
        serialize_constants=False,
        serialize_example_inputs=False,
    )
    text: bytes = written.exported_program
    return text


def program_from_json(
    data: Mapping[str, Any],
    state_dict: dict[str, torch.Tensor],
    constants: dict[str, torch.Tensor],
) -> ExportedProgram:
    """Return the program that JSON of `graph_to_json` describes.

    torch evaluates the sizes in it as Python and imports the classes that it names.

    Args:
        data: The JSON, read.
        state_dict: The program's parameters and persistent buffers.
        constants: Its other tensors.
    """
    serializer = _serializer()
    graph = serializer._dict_to_dataclass(serializer.ExportedProgram, data)
    reader = serializer.ExportedProgramDeserializer()
    program: ExportedProgram = reader.deserialize(graph, state_dict, constants)
    return program


def size_functions() -> Collection[Callable[..., Any]]:
    """Return the Python functions on sizes that a graph in JSON may call."""
    functions: Collection[Callable[..., Any]] = _serializer()._SYM_OPS
    return functions
