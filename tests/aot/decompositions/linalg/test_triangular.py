"""Triangular systems, beside eager torch."""

import pytest
import torch

from pelton.aot.decompositions.linalg.triangular import lower_solve, upper_solve
from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}


def triangle(*batch, size, upper):
    torch.manual_seed(0)
    x = torch.randn(*batch, size, size) + 3 * torch.eye(size)
    return torch.triu(x) if upper else torch.tril(x)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solutions_on_each_side(size, upper, left, unit):
    factor = triangle(2, size=size, upper=upper)
    right = torch.randn(2, size, 3) if left else torch.randn(2, 3, size)
    compare(
        aten.linalg_solve_triangular.default, factor, right, upper=upper, left=left,
        unitriangular=unit, **TOLERANCE,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solutions_of_the_transpose(upper, transpose, unit):
    factor, right = triangle(size=4, upper=upper), torch.randn(4, 2)
    compare(aten.triangular_solve.default, right, factor, upper, transpose, unit, **TOLERANCE)


def test_the_other_triangle_is_not_read():
    factor = triangle(size=4, upper=False)
    noise, right = torch.triu(torch.full((4, 4), torch.nan), 1), torch.randn(4, 2)
    torch.testing.assert_close(lower_solve(factor + noise, right), lower_solve(factor, right))
    torch.testing.assert_close(
        upper_solve((factor + noise).T.contiguous(), right), upper_solve(factor.T, right)
    )


def test_large_matrices_are_left_alone():
    x = torch.eye(33)
    assert decompose(aten.linalg_solve_triangular.default, x, x, upper=True) is NotImplemented
    assert decompose(aten.triangular_solve.default, x, x) is NotImplemented
