"""Lowering: captured programs become functions of one MLIR module."""
