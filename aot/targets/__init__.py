"""What a module can be compiled for: each target is one class and one line in a table."""

from .base import Artifact, CompileInput, FunctionReport, Refusal, ReportingTarget, Target
from .table import TARGETS, find_target

__all__ = [
    "TARGETS",
    "Artifact",
    "CompileInput",
    "FunctionReport",
    "Refusal",
    "ReportingTarget",
    "Target",
    "find_target",
]
