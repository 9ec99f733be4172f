"""Calls of a procedure: jittables, exported programs, other procedures."""
