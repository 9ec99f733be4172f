"""Singular values and eigenvalues: what their factors multiply to, and eager torch."""

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

SHAPES = [(1, 1), (2, 2), (5, 3), (3, 5), (4, 4), (2, 3, 4)]
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}


def matrix(*shape):
    torch.manual_seed(0)
    return torch.randn(shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("full", [True, False])
def test_singular_vectors_rebuild_the_matrix(shape, full):
    x = matrix(*shape)
    left, values, right = decompose(aten._linalg_svd.default, x, full)
    wanted = torch.linalg.svd(x, full)
    assert [part.shape for part in (left, values, right)] == [part.shape for part in wanted]
    torch.testing.assert_close(values, wanted[1], **TOLERANCE)
    count = min(shape[-2:])
    rebuilt = left[..., :count] * values[..., None, :] @ right[..., :count, :]
    torch.testing.assert_close(rebuilt, x, **TOLERANCE)
    for vectors in (left.mT @ left, right @ right.mT):
        torch.testing.assert_close(vectors, torch.eye(vectors.shape[-1]).expand(vectors.shape),
                                   **TOLERANCE)  # fmt: skip


@pytest.mark.parametrize("shape", [*SHAPES, (3, 40)], ids=str)
def test_singular_values_alone(shape):
    values = decompose(aten._linalg_svd.default, matrix(*shape), False, False)[1]
    torch.testing.assert_close(values, torch.linalg.svdvals(matrix(*shape)), **TOLERANCE)


def test_singular_matrices_have_orthogonal_vectors():
    x = torch.outer(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0]))
    left, values, _ = decompose(aten._linalg_svd.default, x, True)
    torch.testing.assert_close(left.T @ left, torch.eye(3), **TOLERANCE)
    torch.testing.assert_close(values, torch.linalg.svdvals(x), **TOLERANCE)


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_eigenvectors_of_one_triangle(size, triangle):
    x = matrix(2, size, size)
    values, vectors = decompose(aten._linalg_eigh.default, x, triangle)
    part = torch.tril(x) if triangle == "L" else torch.triu(x)
    full = part + part.mT - torch.diag_embed(torch.diagonal(x, dim1=-2, dim2=-1))
    torch.testing.assert_close(values, torch.linalg.eigvalsh(full), **TOLERANCE)
    torch.testing.assert_close(full @ vectors, vectors * values[..., None, :], **TOLERANCE)


def test_eigenvalues_of_both_signs_and_equal_ones():
    x = torch.diag(torch.tensor([-3.0, 2.0, 2.0, 0.0]))
    values, vectors = decompose(aten._linalg_eigh.default, x)
    torch.testing.assert_close(values, torch.tensor([-3.0, 0.0, 2.0, 2.0]), **TOLERANCE)
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(4), **TOLERANCE)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)], ids=str)
@pytest.mark.parametrize("tolerance", [(None, None), (0.5, None), (None, 0.3), (0.1, 0.1)], ids=str)
def test_pseudo_inverses(shape, tolerance):
    atol, rtol = (None if each is None else torch.tensor(each) for each in tolerance)
    given, wanted = {"atol": atol, "rtol": rtol}, torch.linalg.pinv
    x = matrix(*shape)
    found = decompose(aten.linalg_pinv.atol_rtol_tensor, x, **given)
    torch.testing.assert_close(found, wanted(x, **given), **TOLERANCE)


def test_pseudo_inverses_of_symmetric_matrices():
    x = matrix(3, 3)
    compare(aten.linalg_pinv.atol_rtol_tensor, x + x.T, hermitian=True, **TOLERANCE)


@pytest.mark.parametrize("x", [torch.ones(2, 2).half(), torch.zeros(0, 2)], ids=["half", "empty"])
def test_other_types_and_empty_matrices_are_left_alone(x):
    assert decompose(aten._linalg_svd.default, x) is NotImplemented
    assert decompose(aten.linalg_pinv.atol_rtol_tensor, x) is NotImplemented
