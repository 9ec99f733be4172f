"""Capture: a model or function becomes an `ExportedProgram` with a signature."""
