"""Runs artifacts against PyTorch, and finds the operator that differs."""

from .artifact import Verification
from .errors import NumericsError
from .options import Numerics
from .report import Comparison, Culprit, Report

__all__ = ["Comparison", "Culprit", "Numerics", "NumericsError", "Report", "Verification"]
