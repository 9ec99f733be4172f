"""IREE's compiler in a session or child process, and the passes that run between its phases.

This package knows MLIR and IREE, and neither torch nor the rest of Pelton, so that a compile in a
process of its own starts at once.
"""

from .errors import CompilerFailed, CompilerTimedOut
from .passes import PhasePasses, output_channel_tile
from .process import compile_file_isolated, cpu_target
from .session import compile_file

__all__ = [
    "CompilerFailed",
    "CompilerTimedOut",
    "PhasePasses",
    "compile_file",
    "compile_file_isolated",
    "cpu_target",
    "output_channel_tile",
]
