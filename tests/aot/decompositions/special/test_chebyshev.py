"""Fits of Chebyshev series, and their evaluation."""

import pytest
import torch
from torch._subclasses import FakeTensorMode

from pelton.aot.decompositions.special.chebyshev import chebyshev, chebyshev_coefficients

X = torch.linspace(-2, 3, 101, dtype=torch.float64)


@pytest.mark.parametrize("terms", [16, 24, 40])
def test_a_smooth_function_is_fitted_to_the_accuracy_of_float64(terms):
    coefficients = chebyshev_coefficients(torch.exp, -2.0, 3.0, terms)
    assert len(coefficients) == terms
    fitted = chebyshev(X, coefficients, -2.0, 3.0)
    torch.testing.assert_close(fitted, X.exp(), rtol=1e-9, atol=1e-9)


def test_polynomials_are_fitted_by_as_many_terms_as_they_have():
    found = chebyshev_coefficients(torch.square, -1.0, 1.0, 5)
    torch.testing.assert_close(torch.tensor(found), torch.tensor([0.5, 0, 0.5, 0, 0]))


def test_numbers_outside_the_interval_are_clamped_to_it():
    coefficients = chebyshev_coefficients(torch.exp, 0.0, 1.0, 12)
    ends = chebyshev(torch.tensor([-5.0, 5.0]), coefficients, 0.0, 1.0)
    torch.testing.assert_close(ends, torch.tensor([1.0, 1.0]).exp() ** torch.tensor([0.0, 1.0]))


def test_nan_stays_nan():
    coefficients = chebyshev_coefficients(torch.exp, 0.0, 1.0, 12)
    assert chebyshev(torch.tensor([torch.nan]), coefficients, 0.0, 1.0).isnan().all()


def test_functions_are_fitted_while_fake_tensors_are_traced():
    with FakeTensorMode():
        coefficients = chebyshev_coefficients(torch.sin, 0.0, 1.0, 10)
    assert all(isinstance(coefficient, float) for coefficient in coefficients)
