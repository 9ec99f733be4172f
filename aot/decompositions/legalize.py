"""From an exported program to one that the compiler takes and gets right."""

from __future__ import annotations

from collections.abc import Mapping

from torch._ops import OperatorBase
from torch.export import ExportedProgram

from .family import Decomposition
from .rewrites import rewrite_graph
from .table import corrections, current_aot_decompositions


def legalize(
    program: ExportedProgram, table: Mapping[OperatorBase, Decomposition] | None = None
) -> ExportedProgram:
    """Return a program that computes the same with operators that the compiler lowers rightly.

    The given program and its modules stay as they are; weights are shared, not copied.

    Args:
        program: What `torch.export.export` returned.
        table: Decompositions to use instead of `current_aot_decompositions()`. Those without
            which results would be wrong are used in any case, unless the table has its own.

    Example:
        >>> import torch
        >>> program = torch.export.export(torch.nn.GELU(), (torch.ones(2),))
        >>> type(legalize(program)).__name__
        'ExportedProgram'
    """
    chosen = current_aot_decompositions() if table is None else dict(table)
    legal = program.run_decompositions({**corrections(), **chosen})
    rewrite_graph(legal.graph_module)
    return legal
