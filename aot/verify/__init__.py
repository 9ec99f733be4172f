"""Verification of artifacts against PyTorch, and the first operator that differs."""

from .artifact import Verification
from .options import Numerics
from .report import Comparison, FirstDifference, NumericsError, Report

__all__ = ["Comparison", "FirstDifference", "Numerics", "NumericsError", "Report", "Verification"]
