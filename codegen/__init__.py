"""IREE's compiler, and what is changed in a program between its phases.

It knows MLIR and IREE, and neither torch nor the rest of Pelton, so that a compile in a process of
its own starts at once.
"""

from .changes import Changes, channels_of_tile
from .process import compile_file_isolated, processor_target
from .session import CompilerFailed, CompilerTimedOut, compile_file

__all__ = [
    "Changes",
    "CompilerFailed",
    "CompilerTimedOut",
    "channels_of_tile",
    "compile_file",
    "compile_file_isolated",
    "processor_target",
]
