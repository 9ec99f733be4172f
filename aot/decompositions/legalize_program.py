"""Preparation of a traced program for the importer: decomposition, rewrites, normalisation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from torch.export import ExportedProgram

from ..capture.dynamic_squeeze import refuse_squeezed_sizes
from ..capture.program import Program, normalize
from ..capture.trace import tracing_settings
from ..spec.errors import PeltonError, UnsupportedOpError
from ..spec.locations import location_in_trace
from . import legalize


def legalize_program(
    program: ExportedProgram,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
    *,
    return_changed_inputs: bool = False,
) -> Program:
    """Return a program in the form that the importer takes; the given one is not modified.

    Args:
        program: A program as returned by `torch.export.export`.
        decompositions: The operators to decompose, in place of the current table.
        return_changed_inputs: As for `normalize`.

    Raises:
        DynamicShapeError: Its meaning depends on a dynamic size being 1.
        UnsupportedOpError: An operator cannot be decomposed; names it and the user's line.
        ExportError: The program has inputs or results that have no form in MLIR.
    """
    refuse_squeezed_sizes(program)
    try:
        with tracing_settings():
            legal = legalize(program, decompositions)
    except PeltonError:
        raise
    except Exception as error:
        raise _decomposition_error(error) from error
    return normalize(legal, return_changed_inputs=return_changed_inputs)


def _decomposition_error(error: Exception) -> UnsupportedOpError:
    text = str(error)
    reason, _, trace = text.partition("While executing")
    operator = re.search(r"target=torch\.ops\.([\w.]+)", trace)
    name = operator[1] if operator else "an operator"
    return UnsupportedOpError(
        f"{name} cannot be decomposed: {' '.join(reason.split())[:300] or type(error).__name__}",
        operators=(operator[1],) if operator else (),
        location=location_in_trace(trace),
    )
