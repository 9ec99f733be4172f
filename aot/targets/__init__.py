"""What a module can be compiled for: each target is one class and one line in a table."""

from .base import Artifact, FunctionReport, Refusal, ReportingTarget, Target
from .table import TARGETS, find_target

__all__ = [
    "TARGETS",
    "Artifact",
    "FunctionReport",
    "Refusal",
    "ReportingTarget",
    "Target",
    "find_target",
]
