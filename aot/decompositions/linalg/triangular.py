"""Triangular systems, solved by substitution."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..registry import Family
from .small_matrices import REASON, fits

aten = torch.ops.aten

FAMILY = Family("triangular")


def lower_solve(factor: Tensor, right: Tensor, *, unit: bool = False) -> Any:
    """Return the solution of factor @ x = right for a lower triangular factor.

    Args:
        factor: A triangular matrix (..., n, n); its other triangle is not read.
        right: The right-hand sides (..., n, m).
        unit: Take the diagonal of `factor` to be 1, without reading it.
    """
    rows: list[Tensor] = []
    for k in range(factor.shape[-1]):
        row = right[..., k, :]
        if rows:
            known = torch.stack(rows, -2)
            row = row - torch.matmul(factor[..., k : k + 1, :k], known)[..., 0, :]
        rows.append(row if unit else row / factor[..., k, k, None])
    return torch.stack(rows, -2) if rows else right.clone()


def upper_solve(factor: Tensor, right: Tensor, *, unit: bool = False) -> Any:
    """Return the solution of factor @ x = right for an upper triangular factor.

    Args:
        factor: A triangular matrix (..., n, n); its other triangle is not read.
        right: The right-hand sides (..., n, m).
        unit: Take the diagonal of `factor` to be 1, without reading it.
    """
    return lower_solve(factor.flip(-2, -1), right.flip(-2), unit=unit).flip(-2)


@FAMILY.decomposes(aten.linalg_solve_triangular.default, reason=REASON)
def solve_triangular(
    factor: Tensor, right: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """`linalg_solve_triangular`: the solution of a triangular system."""
    if not fits(factor):
        return NotImplemented
    if not left:
        transposed = solve_triangular(
            factor.mT, right.mT, upper=not upper, left=True, unitriangular=unitriangular
        )
        return transposed.mT.clone()
    solve = upper_solve if upper else lower_solve
    return solve(factor, right, unit=unitriangular)


@FAMILY.decomposes(aten.triangular_solve.default, reason=REASON)
def triangular_solve(
    right: Tensor,
    factor: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Any:
    """`triangular_solve`: the solution of a triangular system, and the factor."""
    if not fits(factor):
        return NotImplemented
    used = factor.mT if transpose else factor
    solution = solve_triangular(used, right, upper=upper != transpose, unitriangular=unitriangular)
    return solution, factor.clone()
