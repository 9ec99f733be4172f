"""Rewrites of exported graphs that a decomposition table cannot express."""

from .pipeline import rewrite_graph

__all__ = ["rewrite_graph"]
