"""Small real matrices, on which factorisations are unrolled: each column is one step.

Sizes must be static; larger matrices are refused.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...spec.sizes import is_static

LARGEST = 32
"""The most rows or columns of a matrix whose factorisation is unrolled."""

REASON = "no lowering; unrolled for small sizes"


def fits(matrix: Tensor) -> bool:
    """Return whether a matrix (..., m, n) is real, static and small enough to unroll."""
    sizes = matrix.shape[-2:]
    small = all(is_static(size) and size <= LARGEST for size in sizes)
    return small and not matrix.dtype.is_complex


def no_errors(matrix: Tensor) -> Tensor:
    """Return the `info` of LAPACK for a batch of matrices: 0 for each."""
    return torch.zeros(matrix.shape[:-2], dtype=torch.int32, device=matrix.device)
