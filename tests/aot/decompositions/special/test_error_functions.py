"""Gamma, zeta, error and Bessel functions at the ends of their ranges, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

INF, NAN = math.inf, math.nan
DTYPES = [torch.float32, torch.float64]
X = torch.cat([torch.linspace(-6.7, 6.7, 41), torch.tensor([0.0, 1e-3, 0.25, 20.0, 100.0])])

EVEN = [aten.special_i0e, aten.special_i1e, aten.i0, aten.special_i1]
ERRORS = [aten.erfc, aten.special_erfcx, aten.special_log_ndtr]


@pytest.mark.parametrize("operator", [aten.lgamma, aten.digamma, *EVEN, *ERRORS], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_one_number(operator, dtype):
    x = X.to(dtype)
    x = x[x.abs() < 60] if operator in (aten.i0, aten.special_i1) else x
    x = x[x > -4] if operator is aten.special_erfcx else x
    rtol = 1e-4 if dtype is torch.float32 else 1e-8
    compare(operator.default, x, rtol=rtol, atol=rtol / 10)


@pytest.mark.parametrize("operator", [aten.lgamma, aten.digamma], ids=str)
def test_poles_and_infinities(operator):
    compare(operator.default, torch.tensor([0.0, -1.0, -2.0, INF, NAN, 1e30, 1.0, 2.0]), atol=1e-6,
            rtol=1e-5)  # fmt: skip


def test_the_pole_of_digamma_has_the_other_sign_than_its_zero():
    compare(aten.digamma.default, torch.tensor([0.0, -0.0]), signs=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_inverse_error_functions(dtype):
    info = torch.finfo(dtype)
    x = torch.tensor([0.0, 1e-6, 0.3, -0.7, 0.89, 0.91, 0.99, -0.9999, 1.0, -1.0, 1.5, NAN])
    x = torch.cat([x.to(dtype), torch.tensor([1 - info.eps, info.eps - 1, 1 - info.eps * 4])])
    rtol = 1e-4 if dtype is torch.float32 else 1e-8
    compare(aten.erfinv.default, x, rtol=rtol, atol=1e-7)
    compare(aten.special_ndtri.default, (x[:-3] + 1) / 2, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("operator", ERRORS, ids=str)
def test_error_functions_of_infinities(operator):
    compare(operator.default, torch.tensor([INF, NAN, 0.0]), rtol=1e-5, atol=1e-6)


def test_the_complement_is_exact_for_large_numbers():
    x = torch.tensor([5.0, 10.0, 20.0, 26.0], dtype=torch.float64)
    compare(aten.erfc.default, x, rtol=1e-10, atol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_zeta(dtype):
    s = torch.tensor([1.0, 1.1, 2.0, 3.0, 7.5, 0.5])[:, None].to(dtype)
    q = torch.tensor([0.1, 1.0, 2.5, 30.0, 0.0, -1.0, -0.5]).to(dtype)
    rtol = 1e-4 if dtype is torch.float32 else 1e-9
    compare(aten.special_zeta.default, s, q, rtol=rtol, atol=1e-6)


def test_spherical_bessel():
    x = torch.tensor([0.0, 1e-4, 0.09, 0.11, 3.0, -3.0, 100.0, INF, -INF, NAN])
    compare(aten.special_spherical_bessel_j0.default, x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("operator", [aten.lgamma, aten.digamma, aten.erfc], ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.bfloat16], ids=str)
def test_types_are_promoted_as_torch_does(operator, dtype):
    compare(operator.default, torch.tensor([1, 1, 1]).to(dtype), atol=1e-2, rtol=1e-2)
    compare(operator.default, torch.ones((), dtype=dtype), atol=1e-2, rtol=1e-2)
    compare(operator.default, torch.ones(0, dtype=dtype))


def test_complex_numbers_are_left_to_others():
    assert decompose(aten.erfc.default, torch.ones(2, dtype=torch.complex64)) is NotImplemented
