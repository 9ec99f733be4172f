"""QR, products of reflections, unpacked LU factors and exponentials, beside eager torch."""

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
SHAPES = [(1, 1), (4, 4), (5, 3), (3, 5), (2, 4, 3), (0, 2, 2), (3, 0)]


def matrix(*shape):
    torch.manual_seed(0)
    return torch.randn(shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_orthogonal_and_triangular_factors(shape, mode):
    compare(aten.linalg_qr.default, matrix(*shape), mode, **TOLERANCE)


@pytest.mark.parametrize("shape", SHAPES[:5], ids=str)
def test_reflections(shape):
    x = matrix(*shape)
    compare(aten.geqrf.default, x, **TOLERANCE)
    if shape[-2] >= shape[-1]:
        reflections, factors = torch.geqrf(x)
        compare(aten.linalg_householder_product.default, reflections, factors, **TOLERANCE)
        compare(aten.orgqr.default, reflections, factors, **TOLERANCE)


def test_columns_that_are_clear_are_not_reflected():
    x = torch.tensor([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]])
    compare(aten.geqrf.default, x)
    compare(aten.geqrf.default, torch.zeros(3, 2))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_products_with_reflections(left, transpose):
    reflections, factors = torch.geqrf(matrix(4, 4))
    x = torch.randn(4, 3) if left else torch.randn(3, 4)
    compare(aten.ormqr.default, reflections, factors, x, left, transpose, **TOLERANCE)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 3, 3)], ids=str)
def test_unpacked_factors(shape):
    x = matrix(*shape)
    factors, exchanges = torch.linalg.lu_factor(x)
    compare(aten.lu_unpack.default, factors, exchanges)
    compare(aten.linalg_lu.default, x, **TOLERANCE)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_solutions_by_factors(left, adjoint):
    factors, exchanges = torch.linalg.lu_factor(matrix(2, 4, 4))
    right = torch.randn(2, 4, 3) if left else torch.randn(2, 3, 4)
    compare(
        aten.linalg_lu_solve.default, factors, exchanges, right, left=left, adjoint=adjoint,
        **TOLERANCE,
    )  # fmt: skip


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 10.0])
def test_exponentials(scale):
    x = matrix(2, 4, 4).double() * scale
    compare(aten.linalg_matrix_exp.default, x, rtol=1e-9, atol=1e-9)
    compare(aten.linalg_matrix_exp.default, torch.zeros(3, 3))


def test_exponentials_of_half_precision_are_computed_in_float32():
    x = matrix(3, 3).bfloat16()
    found = decompose(aten.linalg_matrix_exp.default, x)
    torch.testing.assert_close(found, torch.linalg.matrix_exp(x.float()).bfloat16())


def test_large_matrices_are_left_alone():
    for operator in (aten.geqrf, aten.linalg_qr, aten.linalg_lu, aten.linalg_matrix_exp):
        assert decompose(operator.default, torch.eye(33)) is NotImplemented
