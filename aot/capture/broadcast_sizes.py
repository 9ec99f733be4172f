"""Dynamic sizes that are 1 in the example, and that the trace broadcasts to another size.

Where the sizes of two operands differ, torch compares the one of 1 with 1, and expands it; the
program is then right for no other size, and the compiler does not broadcast a size that varies.
"""

from __future__ import annotations

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from ..spec.errors import SourceLocation
from .arguments import Arguments
from .diagnosis import asks_of_one, own_line
from .guards import conjuncts, shape_env_of


def sizes_of_one(arguments: Arguments) -> list[tuple[int, int]]:
    """Return the sizes that a trace may fix and that are 1, by position of the input and axis."""
    return [
        (position, axis)
        for position, leaf in enumerate(arguments.inputs)
        for axis, asked in leaf.axes.items()
        if isinstance(leaf.example, torch.Tensor)
        and leaf.example.shape[axis] == 1
        and not asked.strict
        and asked.torch is not torch.export.Dim.STATIC
    ]


def broadcast_sizes(
    program: ExportedProgram,
) -> dict[tuple[int, int], SourceLocation | None]:
    """Return the dynamic sizes that a trace took for 1, with the line, where one is known.

    A branch of the user's own on a size being 1 is no reason: it is a constraint.
    """
    environment = shape_env_of(program)
    ones = {
        relation.lhs: own_line(guard)
        for guard in (environment.guards if environment is not None else ())
        if not asks_of_one(guard)
        for relation in conjuncts(guard.expr)
        if isinstance(relation, sympy.Eq) and relation.lhs.is_Symbol and relation.rhs == 1
    }
    names = [
        spec.arg.name
        for spec in program.graph_signature.input_specs
        if spec.kind is InputKind.USER_INPUT
    ]
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    return {
        (position, axis): ones[size.node.expr]
        for position, name in enumerate(names)
        if isinstance(values.get(name), torch.Tensor)
        for axis, size in enumerate(values[name].shape)
        if isinstance(size, torch.SymInt) and size.node.expr in ones
    }
