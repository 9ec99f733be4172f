"""Notices about a graph, at the user's own line."""

from __future__ import annotations

import warnings

from torch.fx import GraphModule

from ..spec.errors import PeltonError, SourceLocation
from ..spec.locations import location_of_node


def tell_fallback(module: GraphModule, error: PeltonError, target: str) -> None:
    """Warn that a graph runs in eager, and why.

    Args:
        module: The graph of AOTAutograd.
        error: Why it cannot be compiled.
        target: The target.
    """
    text = (
        f"a graph of {_count(module)} operators runs in eager, as it cannot be compiled for "
        f"{target!r}: {error}; options={{'fallback': False}} makes this an error"
    )
    tell(module, text, error.location)


def tell(module: GraphModule, text: str, location: SourceLocation | None = None) -> None:
    """Warn about a graph at a line of the user's; by default at its first.

    Args:
        module: The graph.
        text: The warning.
        location: The user's line; None: that of the graph's first call.
    """
    location = location or _first_location(module)
    if location is None:
        warnings.warn(text, UserWarning, stacklevel=2)
    else:
        warnings.warn_explicit(text, UserWarning, location.file, location.line)


def _count(module: GraphModule) -> int:
    return sum(node.op == "call_function" for node in module.graph.nodes)


def _first_location(module: GraphModule) -> SourceLocation | None:
    found = (location_of_node(node) for node in module.graph.nodes if node.op == "call_function")
    return next((location for location in found if location is not None), None)
