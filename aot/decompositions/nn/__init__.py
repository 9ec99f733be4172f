"""Decompositions of backward operators, mixtures of experts, and random numbers."""
