"""Rewrites of exported graphs that a decomposition table can't express."""

from .pipeline import rewrite_graph

__all__ = ["rewrite_graph"]
