"""Decompositions of attention."""
