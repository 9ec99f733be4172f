"""Procedural modules: classes whose methods are traced into the functions of one MLIR module."""
