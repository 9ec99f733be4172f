"""Decompositions of reductions, scans, sorts and scatters."""
