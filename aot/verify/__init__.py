"""Runs artifacts against PyTorch, and finds the operator that differs."""

from .artifact import Verification
from .options import Numerics
from .report import Comparison, Culprit, NumericsError, Report

__all__ = ["Comparison", "Culprit", "Numerics", "NumericsError", "Report", "Verification"]
