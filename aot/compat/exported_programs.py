"""Exported programs: decomposed, with another graph, and torch's form of them in JSON."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch._export.utils import (
    _collect_all_valid_cia_ops,
    _is_preservable_cia_op,
    _special_op_to_preserve_cia,
)
from torch._ops import OperatorBase
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.export import ExportedProgram
from torch.export.exported_program import _decompose_exported_program
from torch.export.graph_signature import ExportGraphSignature

from .decomposition_tables import composite_names, decomposable


def decompose(
    program: ExportedProgram, table: Mapping[OperatorBase, Callable[..., Any]]
) -> ExportedProgram:
    """Return `program.run_decompositions(table)`, which decomposes every operator of the table.

    torch collects its composite operators in each call, which takes as long as to decompose a
    small program; here they are collected once.

    Args:
        program: The program; it stays as it is.
        table: The decompositions.
    """
    operators = _composite_operators(len(composite_names()), len(torch.ops._dir))
    with unset_fake_temporarily(), decomposable(table) as hidden:
        composite: dict[OperatorBase, Callable[..., Any]] = {
            operator: table.get(operator, _special_op_to_preserve_cia)
            for operator in operators.difference(hidden)
        }
        others: dict[OperatorBase, Callable[..., Any]] = {}
        for operator, function in table.items():
            if operator not in composite:
                of_torch = composite if _is_preservable_cia_op(operator) else others
                of_torch[operator] = function
        decomposed: ExportedProgram = _decompose_exported_program(
            program,
            cia_to_decomp=composite,
            python_decomp_table=others,
            joint_loss_index=None,
            decompose_custom_triton_ops=False,
        )
        return decomposed


@functools.lru_cache(maxsize=1)
def _composite_operators(registered: int, namespaces: int) -> frozenset[OperatorBase]:
    """Return the operators that torch may keep or decompose; a new one changes the arguments."""
    return frozenset(_collect_all_valid_cia_ops())


def with_graph(
    program: ExportedProgram,
    graph_module: torch.fx.GraphModule,
    signature: ExportGraphSignature | None = None,
) -> ExportedProgram:
    """Return a program with another graph, whose tensors and ranges stay.

    Args:
        program: The program; it stays as it is.
        graph_module: A graph with placeholders and outputs of the names in its signature.
        signature: Its signature; None: that of the program.
    """
    return program._update(graph_module, signature or program.graph_signature)


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
