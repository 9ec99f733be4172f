"""Factorisations of small matrices, with their loops unrolled.

Sizes must be known and small: each column is one step of the program. Larger matrices are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ..registry import Family, present

aten = torch.ops.aten

FAMILY = Family("dense")

LARGEST = 32
"""The most columns that are unrolled."""

_REASON = "no lowering; unrolled for small sizes"


def _fits(*sizes: Any) -> bool:
    return all(isinstance(size, int) and size <= LARGEST for size in sizes)


def _enter(
    *operators: OpOverload, reason: str = _REASON
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        def decomposition(*args: Any, **kwargs: Any) -> Any:
            matrix = next(arg for arg in args if isinstance(arg, Tensor))
            if matrix.dtype.is_complex or not _fits(*matrix.shape[-2:]):
                return NotImplemented
            return function(*args, **kwargs)

        for operator in operators:
            FAMILY.enter(operator, decomposition, reason=reason)
        return function

    return enter


def _no_errors(matrix: Tensor) -> Tensor:
    return torch.zeros(matrix.shape[:-2], dtype=torch.int32, device=matrix.device)


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


@_enter(aten.linalg_cholesky_ex.default)
def linalg_cholesky_ex(
    matrix: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the Cholesky factor and that there was no error."""
    lower = cholesky(matrix.mT if upper else matrix)
    return (lower.mT if upper else lower).clone(), _no_errors(matrix)


@_enter(aten.linalg_cholesky.default, *present("cholesky"))  # which torch 2.14 dropped
def linalg_cholesky(matrix: Tensor, upper: bool = False) -> Tensor:
    """Return the Cholesky factor."""
    factor: Tensor = linalg_cholesky_ex(matrix, upper=upper)[0]
    return factor


def lower_solve(factor: Tensor, right: Tensor, *, unit: bool = False) -> Any:
    """Return the solution of factor @ x = right for a lower triangular factor."""
    rows: list[Tensor] = []
    for k in range(factor.shape[-1]):
        row = right[..., k, :]
        if rows:
            known = torch.stack(rows, -2)
            row = row - torch.matmul(factor[..., k : k + 1, :k], known)[..., 0, :]
        rows.append(row if unit else row / factor[..., k, k, None])
    return torch.stack(rows, -2) if rows else right.clone()


def upper_solve(factor: Tensor, right: Tensor, *, unit: bool = False) -> Any:
    """Return the solution of factor @ x = right for an upper triangular factor."""
    return lower_solve(factor.flip(-2, -1), right.flip(-2), unit=unit).flip(-2)


@_enter(aten.linalg_solve_triangular.default)
def solve_triangular(
    factor: Tensor, right: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """Return the solution of a triangular system."""
    if not left:
        turned = solve_triangular(
            factor.mT, right.mT, upper=not upper, left=True, unitriangular=unitriangular
        )
        return turned.mT.clone()
    solve = upper_solve if upper else lower_solve
    return solve(factor, right, unit=unitriangular)


@FAMILY.decomposes(aten.triangular_solve.default, reason=_REASON)
def triangular_solve(
    right: Tensor,
    factor: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Any:
    """Return the solution of a triangular system, and the factor."""
    if right.dtype.is_complex or not _fits(*factor.shape[-2:]):
        return NotImplemented
    used = factor.mT if transpose else factor
    direction = upper != transpose
    solution = solve_triangular(used, right, upper=direction, unitriangular=unitriangular)
    return solution, factor.clone()


@FAMILY.decomposes(aten.cholesky_solve.default, reason=_REASON)
def cholesky_solve(right: Tensor, factor: Tensor, upper: bool = False) -> Any:
    """Return the solution of a system whose Cholesky factor is known."""
    if right.dtype.is_complex or not _fits(*factor.shape[-2:]):
        return NotImplemented
    lower = factor.mT if upper else factor
    return upper_solve(lower.mT, lower_solve(lower, right))


@_enter(aten.cholesky_inverse.default)
def cholesky_inverse(factor: Tensor, upper: bool = False) -> Any:
    """Return the inverse of a matrix whose Cholesky factor is known."""
    lower = factor.mT if upper else factor
    unit = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
    return upper_solve(lower.mT, lower_solve(lower, unit.expand(lower.shape)))
