"""Runs artifacts against PyTorch, and finds the operator that differs."""

from .artifact import Verification
from .options import Numerics
from .report import Comparison, FirstDifference, NumericsError, Report

__all__ = ["Comparison", "FirstDifference", "Numerics", "NumericsError", "Report", "Verification"]
