"""LU factors, solutions, inverses and determinants, beside eager torch."""

import pytest
import torch

from pelton.aot.decompositions.linalg.lu import factorise
from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
SHAPES = [(1, 1), (2, 2), (5, 5), (3, 5), (5, 3), (2, 4, 4), (0, 3, 3), (0, 0)]


def matrix(*shape):
    torch.manual_seed(0)
    return torch.randn(shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_and_exchanges(shape):
    compare(aten.linalg_lu_factor_ex.default, matrix(*shape), **TOLERANCE)
    compare(aten.linalg_lu_factor.default, matrix(*shape), **TOLERANCE)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[-1] == shape[-2]], ids=str)
def test_inverses_and_determinants(shape):
    x = matrix(*shape)
    compare(aten.linalg_inv_ex.default, x, **TOLERANCE)
    compare(aten.linalg_inv.default, x, **TOLERANCE)
    compare(aten.inverse.default, x, **TOLERANCE)
    compare(aten.linalg_det.default, x, **TOLERANCE)
    compare(aten.det.default, x, **TOLERANCE)
    compare(aten.linalg_slogdet.default, x, **TOLERANCE)


@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(3, 3), torch.tensor([[0.0, 1.0], [1.0, 0.0]]),
        torch.diag(torch.tensor([2.0, 0, 1])),
        torch.tensor([[1.0, 2.0], [2.0, 4.0]]),
    ],
    ids=["zeros", "exchange", "zero pivot", "rank 1"],
)  # fmt: skip
def test_determinants_of_singular_matrices_and_exchanges(x):
    compare(aten.linalg_det.default, x)
    compare(aten.linalg_slogdet.default, x)
    compare(aten.linalg_lu_factor_ex.default, x)
    for operator in (aten.linalg_inv_ex.default, aten.linalg_solve_ex.default):
        right = () if operator is aten.linalg_inv_ex.default else (torch.ones(len(x), 1),)
        found, wanted = decompose(operator, x, *right), operator(x, *right)
        torch.testing.assert_close(found[1], wanted[1])


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("right", [(4,), (4, 3), (4, 4)], ids=str)
def test_solutions(left, right):
    if len(right) == 1 and not left:
        pytest.skip("torch refuses it")
    shape = right if left or len(right) == 1 else right[::-1]
    x, b = matrix(4, 4), torch.randn(shape)
    compare(aten.linalg_solve.default, x, b, left=left, **TOLERANCE)
    compare(aten.linalg_solve_ex.default, x, b, left=left, **TOLERANCE)


def test_solutions_of_batches():
    x = matrix(2, 4, 4)
    compare(aten.linalg_solve.default, x, torch.randn(2, 4, 3), **TOLERANCE)
    compare(aten.linalg_solve.default, x, torch.randn(2, 4), **TOLERANCE)
    compare(aten.linalg_solve.default, x, torch.randn(4, 3), **TOLERANCE)
    result = decompose(aten._linalg_solve_ex.default, x, torch.randn(2, 4, 3))
    torch.testing.assert_close(result[1], torch.linalg.lu_factor(x)[0], **TOLERANCE)


@pytest.mark.parametrize("ind", [1, 2])
def test_inverses_of_tensors(ind):
    x = matrix(*((6, 2, 3) if ind == 1 else (2, 3, 6)))
    compare(aten.linalg_tensorinv.default, x, ind, **TOLERANCE)


def test_the_order_of_rows_rebuilds_the_matrix():
    x = matrix(2, 5, 3)
    factors, order, _ = factorise(x)
    lower = torch.tril(factors[..., :3], -1) + torch.eye(5, 3)
    upper = torch.triu(factors[..., :3, :])
    rows = torch.gather(x, -2, order[..., None].expand(x.shape))
    torch.testing.assert_close(lower @ upper, rows)


def test_large_and_unpivoted_matrices_are_left_alone():
    for operator in (aten.linalg_inv_ex, aten.linalg_inv, aten.linalg_det, aten.linalg_slogdet):
        assert decompose(operator.default, torch.eye(33)) is NotImplemented
    assert decompose(aten.linalg_lu_factor.default, torch.eye(2), pivot=False) is NotImplemented
