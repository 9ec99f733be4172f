"""Cholesky factors, with their loop over columns unrolled, and solutions from them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..registry import Family, present
from .small_matrices import REASON, fits, info
from .triangular import lower_solve, upper_solve

aten = torch.ops.aten

FAMILY = Family("cholesky")


def cholesky(matrix: Tensor) -> Tensor:
    """Return the lower factor of a symmetric positive definite matrix."""
    size = matrix.shape[-1]
    rest, columns = matrix, []
    for k in range(size):
        pivot = torch.sqrt(rest[..., k : k + 1, k])
        column = rest[..., :, k] / pivot
        below = (torch.arange(size, device=matrix.device) >= k).to(matrix.dtype)
        column = column * below
        columns.append(column)
        rest = rest - column[..., :, None] * column[..., None, :]
    return torch.stack(columns, -1) if columns else matrix.clone()


@FAMILY.decomposes(aten.linalg_cholesky_ex.default, reason=REASON)
def linalg_cholesky_ex(matrix: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """`linalg_cholesky_ex`: the Cholesky factor, and which pivot is not positive."""
    if not fits(matrix):
        return NotImplemented
    lower = cholesky(matrix.mT if upper else matrix)
    failed = torch.logical_not(torch.diagonal(lower, dim1=-2, dim2=-1) > 0)
    return (lower.mT if upper else lower).clone(), info(failed)


@FAMILY.decomposes(  # torch 2.14 dropped `cholesky`
    aten.linalg_cholesky.default, *present("cholesky"), reason=REASON
)
def linalg_cholesky(matrix: Tensor, upper: bool = False) -> Any:
    """`linalg_cholesky`: the Cholesky factor."""
    found = linalg_cholesky_ex(matrix, upper=upper)
    return found if found is NotImplemented else found[0]


@FAMILY.decomposes(aten.cholesky_solve.default, reason=REASON)
def cholesky_solve(right: Tensor, factor: Tensor, upper: bool = False) -> Any:
    """`cholesky_solve`: the solution of a system given the Cholesky factor of its matrix."""
    if not fits(factor):
        return NotImplemented
    lower = factor.mT if upper else factor
    return upper_solve(lower.mT, lower_solve(lower, right))


@FAMILY.decomposes(aten.cholesky_inverse.default, reason=REASON)
def cholesky_inverse(factor: Tensor, upper: bool = False) -> Any:
    """`cholesky_inverse`: the inverse of a matrix given its Cholesky factor."""
    if not fits(factor):
        return NotImplemented
    lower = factor.mT if upper else factor
    unit = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
    return upper_solve(lower.mT, lower_solve(lower, unit.expand(lower.shape)))
