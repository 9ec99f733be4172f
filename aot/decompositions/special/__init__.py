"""Decompositions of special functions."""
