"""QR by Householder reflections, products of reflections, LU unpacking, matrix exponentials."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..registry import Family
from .lu import factorise
from .small_matrices import REASON, fits
from .triangular import lower_solve, upper_solve

aten = torch.ops.aten

FAMILY = Family("qr")


@FAMILY.decomposes(aten.geqrf.default, reason=REASON)
def geqrf(matrix: Tensor) -> Any:
    """`geqrf`: R above and the Householder vectors below the diagonal, and their factors tau."""
    if not fits(matrix):
        return NotImplemented
    rows, columns = matrix.shape[-2:]
    count = torch.arange(rows, device=matrix.device)
    factors = []
    for k in range(min(rows, columns)):
        vector, factor, diagonal = _reflection(matrix[..., :, k], k, count)
        factors.append(factor)
        right = (torch.arange(columns, device=matrix.device) > k).to(matrix.dtype)
        product = torch.matmul(vector[..., None, :], matrix) * right
        matrix = matrix - factor[..., None, None] * vector[..., :, None] * product
        column = torch.where(count > k, vector, matrix[..., :, k])
        column = torch.where(count == k, diagonal[..., None], column)
        here = torch.arange(columns, device=matrix.device) == k
        matrix = torch.where(here, column[..., None], matrix)
    none = matrix.new_zeros((*matrix.shape[:-2], 0))
    return matrix.clone(), torch.stack(factors, -1) if factors else none


def _reflection(column: Tensor, k: int, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return vector and factor of the reflection that clears a column below k, and entry k of R."""
    first = column[..., k]
    below = torch.where(count > k, column, torch.zeros_like(column))
    rest = (below * below).sum(-1)
    norm = torch.sqrt(first * first + rest)
    diagonal = torch.where(first < 0, norm, -norm)
    clear = rest == 0
    diagonal = torch.where(clear, first, diagonal)
    divisor = torch.where(clear, torch.ones_like(first), first - diagonal)
    vector = torch.where(count == k, torch.ones_like(column), below / divisor[..., None])
    safe = torch.where(clear, torch.ones_like(diagonal), diagonal)
    factor = torch.where(clear, torch.zeros_like(first), (diagonal - first) / safe)
    return vector, factor, diagonal


def _vector(reflections: Tensor, k: int) -> Tensor:
    count = torch.arange(reflections.shape[-2], device=reflections.device)
    column = reflections[..., :, k]
    one = torch.ones_like(column)
    return torch.where(count == k, one, torch.where(count > k, column, torch.zeros_like(column)))


def _reflect(x: Tensor, vector: Tensor, factor: Tensor) -> Tensor:
    product = torch.matmul(vector[..., None, :], x)
    return x - factor[..., None, None] * vector[..., :, None] * product


@FAMILY.decomposes(aten.linalg_householder_product.default, aten.orgqr.default, reason=REASON)
def householder_product(reflections: Tensor, factors: Tensor) -> Any:
    """`linalg_householder_product`: the first columns of the product of the reflections."""
    if not fits(reflections):
        return NotImplemented
    rows, columns = reflections.shape[-2:]
    unit = torch.eye(rows, columns, dtype=reflections.dtype, device=reflections.device)
    product = unit.expand(reflections.shape)
    for k in reversed(range(factors.shape[-1])):
        product = _reflect(product, _vector(reflections, k), factors[..., k])
    return product.clone()


@FAMILY.decomposes(aten.ormqr.default, reason=REASON)
def ormqr(
    reflections: Tensor, factors: Tensor, x: Tensor, left: bool = True, transpose: bool = False
) -> Any:
    """`ormqr`: x times the product of the reflections, or times its transpose."""
    if not fits(reflections):
        return NotImplemented
    result = x if left else x.mT
    order = range(factors.shape[-1])
    for k in order if transpose == left else reversed(order):
        result = _reflect(result, _vector(reflections, k), factors[..., k])
    return (result if left else result.mT).clone()


@FAMILY.decomposes(aten.linalg_qr.default, reason=REASON)
def linalg_qr(matrix: Tensor, mode: str = "reduced") -> Any:
    """`linalg_qr`: an orthogonal and an upper triangular factor."""
    if not fits(matrix):
        return NotImplemented
    reflections, factors = geqrf(matrix)
    rows, columns = matrix.shape[-2:]
    width = rows if mode == "complete" else min(rows, columns)
    upper = torch.triu(reflections[..., :width, :]).clone()
    if mode == "r":
        return matrix.new_zeros(0), upper
    if width > columns:
        reflections = torch.constant_pad_nd(reflections, [0, width - columns], 0.0)
    return householder_product(reflections[..., :, :width], factors), upper


@FAMILY.decomposes(aten.lu_unpack.default, reason=REASON)
def lu_unpack(
    factors: Tensor, exchanges: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """`lu_unpack`: the permutation matrix, L and U."""
    if not fits(factors):
        return NotImplemented
    rows, columns = factors.shape[-2:]
    inner = min(rows, columns)
    empty = factors.new_zeros(0)
    permutation, lower, upper = empty, empty, empty
    if unpack_pivots:
        order = _order(exchanges, rows)
        places = torch.arange(rows, device=factors.device)
        permutation = (places[:, None] == order[..., None, :]).to(factors.dtype)
    if unpack_data:
        unit = torch.eye(rows, inner, dtype=factors.dtype, device=factors.device)
        lower = torch.tril(factors[..., :, :inner], -1) + unit
        upper = torch.triu(factors[..., :inner, :]).clone()
    return permutation, lower, upper


def _order(exchanges: Tensor, rows: int) -> Tensor:
    """Return the order of rows after the exchanges given by pivots."""
    places = torch.arange(rows, device=exchanges.device)
    order = places.expand(*exchanges.shape[:-1], rows)
    for k in range(exchanges.shape[-1]):
        other = (exchanges[..., k : k + 1] - 1).to(torch.int64)
        source = torch.where(places == k, other, torch.where(places == other, k, places))
        order = torch.gather(order, -1, source)
    return order


@FAMILY.decomposes(aten.linalg_lu.default, reason=REASON)
def linalg_lu(matrix: Tensor, *, pivot: bool = True) -> Any:
    """`linalg_lu`: the permutation matrix, L and U."""
    if not (pivot and fits(matrix)):
        return NotImplemented
    factors, _, exchanges = factorise(matrix)
    return lu_unpack(factors, exchanges)


@FAMILY.decomposes(aten.linalg_lu_solve.default, reason=REASON)
def lu_solve(
    factors: Tensor, exchanges: Tensor, right: Tensor, *, left: bool = True, adjoint: bool = False
) -> Any:
    """`linalg_lu_solve`: the solution of a system given the LU factors of its matrix."""
    if not fits(factors):
        return NotImplemented
    if not left:
        return lu_solve(factors, exchanges, right.mT, adjoint=not adjoint).mT.clone()
    order = _order(exchanges, factors.shape[-2])
    batch = torch.broadcast_shapes(factors.shape[:-2], right.shape[:-2])  # type: ignore[no-untyped-call]
    right = right.expand(*batch, *right.shape[-2:])
    order = order.expand(*batch, order.shape[-1])
    index = order[..., None].expand(right.shape)
    if not adjoint:
        moved = torch.gather(right, -2, index)
        return upper_solve(factors, lower_solve(factors, moved, unit=True))
    solved = upper_solve(factors.mT, lower_solve(factors.mT, right), unit=True)
    return torch.zeros_like(solved).scatter(-2, index, solved)


_SQUARINGS, _TERMS = 20, 12


@FAMILY.decomposes(aten.linalg_matrix_exp.default, aten.matrix_exp.default, reason=REASON)
def matrix_exp(matrix: Tensor) -> Any:
    """Return the exponential by scaling and squaring of a Taylor series."""
    if not fits(matrix):
        return NotImplemented
    if matrix.dtype in (torch.float16, torch.bfloat16):  # whose squares lose all digits
        return aten.linalg_matrix_exp.default(matrix.float()).to(matrix.dtype)
    norm = matrix.abs().sum(-1).amax(-1)
    halvings = torch.ceil(torch.log2(norm.clamp(min=1e-30))).clamp(0, _SQUARINGS)
    scaled = matrix * torch.exp2(-halvings)[..., None, None]
    unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    result = unit.expand(matrix.shape)
    for n in range(_TERMS, 0, -1):
        result = unit + torch.matmul(scaled, result) / n
    for step in range(_SQUARINGS):
        wanted = (halvings > step)[..., None, None]
        result = torch.where(wanted, torch.matmul(result, result), result)
    return result
