"""Cholesky factors and solutions from them, beside eager torch."""

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
BATCHES = [(), (2,), (0,), (2, 1)]


def positive(*batch, size):
    torch.manual_seed(0)
    x = torch.randn(*batch, size, size)
    return x @ x.mT + size * torch.eye(size)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("upper", [True, False])
def test_factors(size, batch, upper):
    x = positive(*batch, size=size)
    compare(aten.linalg_cholesky_ex.default, x, upper=upper, **TOLERANCE)
    compare(aten.linalg_cholesky.default, x, upper=upper, **TOLERANCE)


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("value", [0.0, -2.0])
def test_a_pivot_that_is_not_positive_is_reported(place, value):
    x = torch.eye(4)
    x[place, place] = value
    x = torch.stack([x, torch.eye(4)])
    _, found = decompose(aten.linalg_cholesky_ex.default, x)
    torch.testing.assert_close(found, torch.linalg.cholesky_ex(x).info)


def test_one_triangle_is_read():
    x = positive(size=4)
    noise = torch.triu(torch.randn(4, 4), 1)
    compare(aten.linalg_cholesky_ex.default, x + noise, **TOLERANCE)
    compare(aten.linalg_cholesky_ex.default, x + noise.T, upper=True, **TOLERANCE)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("batch", BATCHES[:2], ids=str)
def test_solutions_and_inverses(size, upper, batch):
    factor = torch.linalg.cholesky(positive(*batch, size=size), upper=upper)
    right = torch.randn(*batch, size, 3)
    compare(aten.cholesky_solve.default, right, factor, upper, **TOLERANCE)
    compare(aten.cholesky_inverse.default, factor, upper, **TOLERANCE)


def test_float64_has_its_accuracy():
    compare(aten.linalg_cholesky_ex.default, positive(size=6).double())


@pytest.mark.parametrize(
    "x", [torch.eye(33), torch.eye(2, dtype=torch.complex64)], ids=["large", "complex"]
)
def test_large_and_complex_matrices_are_left_alone(x):
    for operator in (aten.linalg_cholesky_ex, aten.linalg_cholesky, aten.cholesky_inverse):
        assert decompose(operator.default, x) is NotImplemented
    assert decompose(aten.cholesky_solve.default, x, x) is NotImplemented
