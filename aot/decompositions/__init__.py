"""Decompositions of ATen operators, and rewrites of graphs, that make a program legal to lower."""

from .legalize import legalize
from .rewrites import rewrite_graph
from .table import current_aot_decompositions, extend_aot_decompositions

__all__ = [
    "current_aot_decompositions",
    "extend_aot_decompositions",
    "legalize",
    "rewrite_graph",
]
