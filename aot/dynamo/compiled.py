"""The call of a compiled graph: inputs, results, aliases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compat.dynamo import mark_boxed
from .graph import InputAlias, PartitionedGraph, ProgramOutput
from .random_numbers import Draws

Run = Callable[[Sequence[Any]], list[Any]]
"""Takes the inputs of a program and gives its results."""

GraphCall = Callable[[list[Any]], Any]
"""Takes the list of a graph's inputs, which it may empty, and gives its outputs."""


def call_of(parts: PartitionedGraph, run: Run, draws: Draws | None = None) -> GraphCall:
    """Return what computes the outputs of a graph.

    Args:
        parts: The parts of the graph.
        run: Calls its program.
        draws: The random numbers that are its last inputs.
    """
    inputs, held, outputs = parts.inputs, parts.held, parts.outputs

    def call(arguments: list[Any]) -> list[Any]:
        if draws is not None:
            arguments.extend(draws(arguments))
        results = run([*[arguments[index] for index in inputs], *held])
        found: list[Any] = []
        for output in outputs:
            if isinstance(output, ProgramOutput):
                result = results[output.position]
                found.append(result if output.order is None else result.permute(output.order))
            elif isinstance(output, InputAlias):
                found.append(arguments[output.position])
            else:
                found.append(output.value)
        arguments.clear()
        return found

    return mark_boxed(call)
