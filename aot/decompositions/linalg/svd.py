"""SVD, eigenvalues of symmetric matrices and pseudo-inverses, by Jacobi rotations.

A loop rotates pairs of columns until all are orthogonal: one half of the columns against the other
half at a time, in the order of a round-robin tournament, so that a step is a few tensor operators.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..registry import Family
from .qr import linalg_qr
from .small_matrices import fits

aten = torch.ops.aten

FAMILY = Family("svd")

_REASON = "no lowering"

_ROWS = torch.contiguous_format

_SWEEPS = {torch.float32: 12, torch.float64: 16}
"""The number of sweeps over all pairs of columns: rotations converge quadratically."""


def _computes(matrix: Tensor) -> bool:
    """Return whether a matrix is of float32 or float64, static and not empty."""
    sizes = matrix.shape[-2:]
    known = all(is_static(size) and size > 0 for size in sizes)
    return known and matrix.dtype in _SWEEPS


def _next_round(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Return the halves with each column opposite its next partner; the first does not move."""
    half = left.shape[-1]
    if half == 1:
        return left, right
    seated = [left[..., :1], right[..., :1], left[..., 1 : half - 1]]
    return torch.cat(seated, -1), torch.cat([right[..., 1:], left[..., half - 1 :]], -1)


def _orthogonal_columns(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return matrix @ V with orthogonal columns, and the orthogonal V."""
    columns = matrix.shape[-1]
    unit = torch.eye(columns, dtype=matrix.dtype, device=matrix.device)
    if columns == 1:
        return matrix.clone(), unit.expand(*matrix.shape[:-2], 1, 1).clone()
    padding = [0, columns % 2]
    both = torch.cat([matrix, unit.expand(*matrix.shape[:-2], columns, columns)], -2)
    both = torch.constant_pad_nd(both, padding, 0.0)  # matrix above V: both get the same rotations
    half, rows = both.shape[-1] // 2, matrix.shape[-2]
    steps = float(_SWEEPS[matrix.dtype] * (both.shape[-1] - 1))
    tiny = torch.finfo(matrix.dtype).eps

    def more(step: Tensor, left: Tensor, right: Tensor) -> Tensor:
        return step < steps

    def rotate(step: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        above, beside = left[..., :rows, :], right[..., :rows, :]
        first, second = (above * above).sum(-2, True), (beside * beside).sum(-2, True)
        product = (above * beside).sum(-2, True)
        meets = product.abs() > tiny * torch.sqrt(first) * torch.sqrt(second)
        ratio = (second - first) / torch.where(meets, 2 * product, torch.ones_like(product))
        sign = torch.where(ratio < 0, -1.0, 1.0)
        tangent = sign / (ratio.abs() + torch.sqrt(1 + ratio * ratio))
        tangent = torch.where(meets, tangent, 0.0)
        cosine = 1 / torch.sqrt(1 + tangent * tangent)
        sine = cosine * tangent
        turned = cosine * left - sine * right, sine * left + cosine * right
        left, right = _next_round(*turned)
        return step + 1, left.clone(memory_format=_ROWS), right.clone(memory_format=_ROWS)

    start = torch.zeros((), dtype=torch.float32, device=matrix.device)
    halves = [part.clone(memory_format=_ROWS) for part in (both[..., :half], both[..., half:])]
    loop = torch.ops.higher_order.while_loop
    _, left, right = loop(more, rotate, (start, *halves), ())
    joined = torch.cat([left, right], -1)[..., :columns]
    return joined[..., :rows, :], joined[..., rows:, :]


def _in_order(values: Tensor, columns: Tensor, descending: bool) -> tuple[Tensor, Tensor]:
    order = torch.argsort(values, -1, descending)
    index = order[..., None, :].expand(columns.shape)
    return torch.gather(values, -1, order), torch.gather(columns, -1, index)


def _norms(columns: Tensor) -> Tensor:
    return torch.sqrt((columns * columns).sum(-2))


@FAMILY.decomposes(aten._linalg_svd.default, reason=_REASON)
def svd(
    matrix: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None
) -> Any:
    """`_linalg_svd`: left singular vectors, singular values, right singular vectors in rows."""
    if not _computes(matrix):
        return NotImplemented
    rows, columns = matrix.shape[-2:]
    if not compute_uv:
        tall = matrix if rows >= columns else matrix.mT
        values = torch.sort(_norms(_orthogonal_columns(tall)[0]), descending=True)[0]
        return matrix.new_zeros(0), values, matrix.new_zeros(0)
    if not fits(matrix):
        return NotImplemented
    if rows < columns:
        left, values, right = svd(matrix.mT, full_matrices)
        return right.mT.clone(), values, left.mT.clone()
    rotated, vectors = _orthogonal_columns(matrix)
    values, vectors = _in_order(_norms(rotated), vectors, True)
    # QR completes the columns of zero singular values to an orthonormal basis.
    mode = "complete" if full_matrices else "reduced"
    left, upper = linalg_qr(torch.matmul(matrix, vectors), mode)
    sign = torch.where(torch.diagonal(upper, dim1=-2, dim2=-1) < 0, -1.0, 1.0)
    sign = torch.constant_pad_nd(sign, [0, left.shape[-1] - columns], 1.0)
    return left * sign[..., None, :], values, vectors.mT.clone()


def _symmetric(matrix: Tensor, triangle: str) -> Tensor:
    lower = torch.tril(matrix if triangle.upper() == "L" else matrix.mT)
    return lower + torch.tril(lower, -1).mT


@FAMILY.decomposes(aten._linalg_eigh.default, reason=_REASON)
def eigh(matrix: Tensor, UPLO: str = "L", compute_v: bool = True) -> Any:
    """`_linalg_eigh`: eigenvalues in ascending order, and eigenvectors, from one triangle.

    The matrix is shifted by its norm to be positive semidefinite: then its singular vectors are
    its eigenvectors.
    """
    if not _computes(matrix):
        return NotImplemented
    symmetric = _symmetric(matrix, UPLO)
    shift = symmetric.abs().sum(-1).amax(-1)[..., None, None]
    unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    _, vectors = _orthogonal_columns(symmetric + shift * unit)
    values = (vectors * torch.matmul(symmetric, vectors)).sum(-2)
    values, vectors = _in_order(values, vectors, False)
    return values, vectors.clone() if compute_v else matrix.new_zeros(0)


@FAMILY.decomposes(aten.linalg_pinv.atol_rtol_tensor, reason=_REASON)
def pinv(matrix: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """`linalg_pinv`: the pseudo-inverse; singular values up to a tolerance count as 0."""
    if not _computes(matrix):
        return NotImplemented
    if hermitian:
        values, right = eigh(matrix)
        left = right
    else:
        rows, columns = matrix.shape[-2:]
        if rows < columns:
            transposed = pinv(matrix.mT, atol=atol, rtol=rtol)
            return transposed.mT.clone()
        rotated, right = _orthogonal_columns(matrix)
        values = _norms(rotated)
        left = rotated / torch.where(values == 0, torch.ones_like(values), values)[..., None, :]
    size = values.abs()
    limit = _tolerance(matrix, size, atol, rtol)[..., None]
    nonzero = size > limit
    inverse = torch.where(nonzero, 1 / torch.where(nonzero, values, torch.ones_like(values)), 0.0)
    return torch.matmul(right * inverse[..., None, :], left.mT)


def _tolerance(matrix: Tensor, size: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Return the tolerance of `linalg_pinv`; the default is relative, and 0 if `atol` is given."""
    default = max(matrix.shape[-2:]) * torch.finfo(matrix.dtype).eps
    largest = size.amax(-1)
    absolute = torch.zeros_like(largest) if atol is None else atol + torch.zeros_like(largest)
    if rtol is None:
        relative = torch.where(absolute > 0, 0.0, default)
    else:
        relative = rtol + torch.zeros_like(largest)
    return torch.maximum(absolute, relative * largest)
