"""Which operators are decomposed before import, and the rewrites that make lowerings right."""

from .legalize import legalize
from .rewrites import rewrite_graph
from .table import current_aot_decompositions, extend_aot_decompositions

__all__ = [
    "current_aot_decompositions",
    "extend_aot_decompositions",
    "legalize",
    "rewrite_graph",
]
