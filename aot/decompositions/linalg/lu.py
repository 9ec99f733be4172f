"""LU factors with partial pivoting, and solutions, inverses and determinants from them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..registry import Family
from .small_matrices import REASON, fits, info
from .triangular import lower_solve, upper_solve

aten = torch.ops.aten

FAMILY = Family("lu")


def _exchange(matrix: Tensor, order: Tensor, k: int, row: Tensor) -> tuple[Tensor, Tensor]:
    """Return the matrix and the order of its rows with row k and another row exchanged."""
    places = torch.arange(matrix.shape[-2], device=matrix.device).expand(order.shape)
    other = row[..., None]
    source = torch.where(places == k, other, torch.where(places == other, k, places))
    index = source[..., None].expand(matrix.shape)
    return torch.gather(matrix, -2, index), torch.gather(order, -1, source)


def factorise(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return L and U in one matrix, the order of the rows, and the pivots (from 1)."""
    rows, columns = matrix.shape[-2:]
    count = torch.arange(rows, device=matrix.device)
    order = count.expand(matrix.shape[:-1])
    exchanges = []
    for k in range(min(rows, columns)):
        candidates = matrix[..., :, k].abs()
        row = torch.where(count >= k, candidates, torch.full_like(candidates, -1.0)).argmax(-1)
        exchanges.append(row + 1)
        matrix, order = _exchange(matrix, order, k, row)
        below = count > k
        pivot = matrix[..., k : k + 1, k]
        pivot = torch.where(pivot == 0, torch.ones_like(pivot), pivot)
        factor = torch.where(below, matrix[..., :, k] / pivot, torch.zeros_like(candidates))
        right = (torch.arange(columns, device=matrix.device) > k).to(matrix.dtype)
        update = factor[..., :, None] * (matrix[..., k, :] * right)[..., None, :]
        here = torch.arange(columns, device=matrix.device) == k
        stored = torch.logical_and(below[:, None], here)
        matrix = torch.where(stored, factor[..., None].expand(matrix.shape), matrix - update)
    return matrix, order, _stacked(exchanges, order).to(torch.int32)


def _stacked(columns: list[Tensor], like: Tensor) -> Tensor:
    """Return columns stacked along a new last dimension; empty if there are none."""
    return torch.stack(columns, -1) if columns else like[..., :0]


def _info(factors: Tensor) -> Tensor:
    """Return the `info` of LAPACK for factors in one matrix: which pivot is exactly 0."""
    return info(torch.diagonal(factors, dim1=-2, dim2=-1) == 0)


def _parity(exchanges: Tensor) -> Tensor:
    places = torch.arange(1, exchanges.shape[-1] + 1, device=exchanges.device)
    odd = (exchanges != places).to(torch.int64).sum(-1) % 2
    return 1 - 2 * odd


def _solve(matrix: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the solution of matrix @ x = right, with the factors."""
    factors, order, exchanges = factorise(matrix)
    shape = torch.Size((*matrix.shape[:-2], *right.shape[-2:]))
    right = right.expand(shape) if right.dim() < len(shape) else right
    index = order[..., None].expand(*right.shape[:-2], *order.shape[-1:], right.shape[-1])
    moved = torch.gather(right, -2, index)
    return upper_solve(factors, lower_solve(factors, moved, unit=True)), factors, exchanges


@FAMILY.decomposes(aten.linalg_lu_factor_ex.default, reason=REASON)
def lu_factor_ex(matrix: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """`linalg_lu_factor_ex`: the factors, the pivots and `info`."""
    if not (pivot and fits(matrix)):
        return NotImplemented
    factors, _, exchanges = factorise(matrix)
    return factors, exchanges, _info(factors)


@FAMILY.decomposes(aten.linalg_lu_factor.default, reason=REASON)
def lu_factor(matrix: Tensor, *, pivot: bool = True) -> Any:
    """`linalg_lu_factor`: the factors and the pivots."""
    found = lu_factor_ex(matrix, pivot=pivot)
    return found if found is NotImplemented else found[:2]


def _solution(matrix: Tensor, right: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    """Return the solution of a linear system of vectors or matrices, and the factors."""
    vector = right.dim() == 1 or right.shape == matrix.shape[:-1]
    columns = right[..., None] if vector else right
    if not left:
        matrix, columns = matrix.mT, columns.mT
    solution, factors, _ = _solve(matrix, columns)
    solution = solution if left else solution.mT.clone()
    return solution[..., 0] if vector else solution, factors


@FAMILY.decomposes(aten.linalg_solve.default, reason=REASON)
def linalg_solve(matrix: Tensor, right: Tensor, *, left: bool = True) -> Any:
    """`linalg_solve`: the solution of a linear system."""
    return _solution(matrix, right, left)[0] if fits(matrix) else NotImplemented


@FAMILY.decomposes(aten._linalg_solve_ex.default, reason=REASON)
def solve_ex(
    matrix: Tensor, right: Tensor, *, left: bool = True, check_errors: bool = False
) -> Any:
    """`_linalg_solve_ex`: the solution, the factors, the pivots and `info`."""
    if not fits(matrix):
        return NotImplemented
    factors, _, exchanges = factorise(matrix)
    solution = linalg_solve(matrix, right, left=left)
    return solution, factors, exchanges, _info(factors)


@FAMILY.decomposes(aten.linalg_solve_ex.default, reason=REASON)
def linalg_solve_ex(
    matrix: Tensor, right: Tensor, *, left: bool = True, check_errors: bool = False
) -> Any:
    """`linalg_solve_ex`: the solution of a linear system, and `info`."""
    if not fits(matrix):
        return NotImplemented
    solution, factors = _solution(matrix, right, left)
    return solution, _info(factors)


@FAMILY.decomposes(aten.linalg_inv_ex.default, reason=REASON)
def inv_ex(matrix: Tensor, *, check_errors: bool = False) -> Any:
    """`linalg_inv_ex`: the inverse and `info`."""
    if not fits(matrix):
        return NotImplemented
    unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    inverse, factors, _ = _solve(matrix, unit.expand(matrix.shape))
    return inverse, _info(factors)


@FAMILY.decomposes(aten.linalg_inv.default, aten.inverse.default, reason=REASON)
def inv(matrix: Tensor) -> Any:
    """Return the inverse."""
    found = inv_ex(matrix)
    return found if found is NotImplemented else found[0]


@FAMILY.decomposes(aten.linalg_tensorinv.default, reason=REASON)
def tensorinv(x: Tensor, ind: int = 2) -> Any:
    """Return the inverse of a tensor whose first `ind` dimensions are the rows of a matrix."""
    rows, columns = x.shape[:ind], x.shape[ind:]
    matrix = x.reshape(math.prod(rows), math.prod(columns))
    inverse = inv(matrix)
    return inverse if inverse is NotImplemented else inverse.reshape(*columns, *rows)


@FAMILY.decomposes(aten._linalg_det.default, reason=REASON)
def det_and_factors(matrix: Tensor) -> Any:
    """Return the determinant and the factors."""
    if not fits(matrix):
        return NotImplemented
    factors, _, exchanges = factorise(matrix)
    pivots = torch.diagonal(factors, dim1=-2, dim2=-1)
    return pivots.prod(-1) * _parity(exchanges).to(matrix.dtype), factors, exchanges


@FAMILY.decomposes(aten.linalg_det.default, aten.det.default, reason=REASON)
def det(matrix: Tensor) -> Any:
    """Return the determinant."""
    found = det_and_factors(matrix)
    return found if found is NotImplemented else found[0]


@FAMILY.decomposes(aten._linalg_slogdet.default, reason=REASON)
def slogdet_and_factors(matrix: Tensor) -> Any:
    """Return sign and logarithm of the determinant, and the factors."""
    if not fits(matrix):
        return NotImplemented
    factors, _, exchanges = factorise(matrix)
    pivots = torch.diagonal(factors, dim1=-2, dim2=-1)
    sign = torch.sign(pivots).prod(-1) * _parity(exchanges).to(matrix.dtype)
    return sign, torch.log(pivots.abs()).sum(-1), factors, exchanges


@FAMILY.decomposes(aten.linalg_slogdet.default, aten.slogdet.default, reason=REASON)
def slogdet(matrix: Tensor) -> Any:
    """Return sign and logarithm of the determinant."""
    found = slogdet_and_factors(matrix)
    return found if found is NotImplemented else found[:2]
