"""Preparation of a traced program for the importer: decomposition, rewrites, normalisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ..capture.dynamic_squeeze import refuse_aligned_corners, refuse_squeezed_sizes
from ..capture.operand_sizes import check_operand_sizes
from ..capture.program import Program, normalize, refuse_unusable_tensors
from ..capture.trace import TRACING_LOCK, tracing_settings
from ..compat.operators import OpOverload, schema_of
from ..spec.errors import PeltonError, UnsupportedOpError
from ..spec.locations import location_in_trace, location_of_node, operator_in_trace
from ..spec.sizes import is_static
from . import legalize


def legalize_program(
    program: ExportedProgram,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
    *,
    return_changed_inputs: bool = False,
    prefix: str = "",
) -> Program:
    """Return a program in the form that the importer takes; the given one is not modified.

    Args:
        program: A program as returned by `torch.export.export`.
        decompositions: The operators to decompose, in place of the current table.
        return_changed_inputs: As for `normalize`.
        prefix: What the names of its tensors start with beyond the user's names.

    Raises:
        DynamicShapeError: Its meaning depends on a dynamic size being 1, or the sizes of operands
            do not fit.
        UnsupportedOpError: An operator cannot be decomposed, or torch loses a write in place; names
            it and the user's line.
        ExportError: The program has inputs, results or tensors that have no form in MLIR.
    """
    refuse_unusable_tensors(program, prefix)
    refuse_squeezed_sizes(program)
    refuse_aligned_corners(program)
    check_operand_sizes(program)
    _refuse_writes_to_windows(program)
    try:
        with TRACING_LOCK, tracing_settings():
            legal = legalize(program, decompositions)
    except PeltonError:
        raise
    except Exception as error:
        raise _decomposition_error(error) from error
    _refuse_other_types(program, legal)
    return normalize(legal, return_changed_inputs=return_changed_inputs)


def _refuse_writes_to_windows(program: ExportedProgram) -> None:
    """Refuse writes in place through `unfold`, of which torch keeps only what windows cover.

    Its functionalization (2.13) takes the gradient of `unfold` for the inverse of the view: where
    no window is, the tensor becomes zero.
    """
    for node in program.graph.nodes:
        if _writes_first(node) and _is_view_of_windows(node.args[0]):
            raise UnsupportedOpError(
                "a write in place through unfold() is lost by torch.export where no window is; "
                "write to slices of the tensor instead",
                operators=("aten.unfold.default",),
                location=location_of_node(node),
            )


def _writes_first(node: Node) -> bool:
    """Return whether a call writes to its first argument."""
    return isinstance(node.target, OpOverload) and schema_of(node.target).is_mutable


def _is_view_of_windows(value: Any) -> bool:
    """Return whether a value is a view of the result of `unfold`."""
    while isinstance(value, Node) and isinstance(value.target, OpOverload):
        if value.target is torch.ops.aten.unfold.default:
            return True
        results = schema_of(value.target).returns
        if not value.args or not results or results[0].alias_info is None:
            return False  # a value of its own
        value = value.args[0]
    return False


def _refuse_other_types(program: ExportedProgram, legal: ExportedProgram) -> None:
    """Refuse a program whose results have changed in element type or size by decomposition.

    Raises:
        UnsupportedOpError: Names the operator of the result, both types and the user's line.
    """
    results = zip(_results(program), _results(legal), strict=True)
    for (name, node, declared), (_, _, found) in results:
        if not isinstance(declared, torch.Tensor) or not isinstance(found, torch.Tensor):
            continue
        same = declared.dtype == found.dtype and declared.dim() == found.dim()
        if not same or any(map(_differ, declared.shape, found.shape)):
            raise UnsupportedOpError(
                f"result {name} of {node.target} is {_type(declared)} by torch.export, but "
                f"{_type(found)} in the compiled program: write it with other operators",
                operators=(str(node.target),),
                location=location_of_node(node),
            )


def _results(program: ExportedProgram) -> list[tuple[str, Node, Any]]:
    """Return the name, the node and the value of each result that is no constant."""
    nodes = {node.name: node for node in program.graph.nodes}
    names = [name for name in program.graph_signature.user_outputs if isinstance(name, str)]
    return [(name, nodes[name], nodes[name].meta.get("val")) for name in names if name in nodes]


def _differ(declared: Any, found: Any) -> bool:
    return is_static(declared) and is_static(found) and declared != found


def _type(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{[*tensor.shape]}"


def _decomposition_error(error: Exception) -> UnsupportedOpError:
    text = str(error)
    reason, _, trace = text.partition("While executing")
    operator = operator_in_trace(trace)
    return UnsupportedOpError(
        f"{operator or 'an operator'} cannot be decomposed: "
        f"{' '.join(reason.split())[:300] or type(error).__name__}",
        operators=(operator,) if operator else (),
        location=location_in_trace(trace),
    )
