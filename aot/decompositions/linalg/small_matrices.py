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


def info(failed: Tensor) -> Tensor:
    """Return the `info` of LAPACK: the first pivot that failed, counted from 1, or 0.

    Args:
        failed: Whether each pivot failed, bool of shape (..., n).
    """
    count = failed.shape[-1]
    if count == 0:
        return torch.zeros(failed.shape[:-1], dtype=torch.int32, device=failed.device)
    numbers = torch.arange(1, count + 1, device=failed.device)
    first = torch.where(failed, numbers, count + 1).amin(-1)
    return torch.where(first > count, 0, first).to(torch.int32)
