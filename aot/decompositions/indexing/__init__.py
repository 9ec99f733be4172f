"""Decompositions of reads and writes by index."""
