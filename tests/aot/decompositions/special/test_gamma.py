"""Incomplete gamma and polygamma functions, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare

aten = torch.ops.aten

INF, NAN = math.inf, math.nan
A = torch.tensor([0.0, 0.1, 0.5, 1.0, 2.5, 10.0, 100.0, INF, -1.0])[:, None]
X = torch.tensor([0.0, 1e-4, 0.3, 1.0, 2.0, 9.0, 11.0, 120.0, INF, -1.0])


@pytest.mark.parametrize("operator", [aten.igamma, aten.igammac], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_incomplete_gamma_functions_and_their_limits(operator, dtype):
    compare(operator.default, A.to(dtype), X.to(dtype), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("operator", [aten.igamma, aten.igammac], ids=str)
def test_incomplete_gamma_functions_of_no_numbers(operator):
    compare(operator.default, torch.zeros(0, 2), torch.ones(2))


@pytest.mark.parametrize("operator", [aten.igamma, aten.igammac], ids=str)
def test_incomplete_gamma_functions_of_nan(operator):
    compare(operator.default, torch.tensor([NAN, 1.0, NAN]), torch.tensor([1.0, NAN, NAN]))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_polygamma(order, dtype):
    x = torch.tensor([0.1, 0.49, 0.5, 1.0, 2.5, 30.0, 1.5]).to(dtype)
    compare(aten.polygamma.default, order, x, rtol=1e-4, atol=1e-6)
    compare(aten.polygamma.default, order, torch.tensor([1, 2, 3]), rtol=1e-4, atol=1e-6)


def test_trigamma_of_negative_numbers():
    compare(aten.polygamma.default, 1, torch.tensor([-0.5, -1.3, -7.2]), rtol=1e-4, atol=1e-5)
