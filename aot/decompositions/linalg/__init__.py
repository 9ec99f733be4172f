"""Decompositions of linear algebra."""
