"""Decompositions of elementwise operators, by element type."""
