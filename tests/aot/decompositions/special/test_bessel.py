"""Bessel and Airy functions on both sides of their ranges, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

INF, NAN = math.inf, math.nan
NAMES = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
]  # fmt: skip
POSITIVE = torch.tensor([1e-3, 0.1, 0.5, 1.0, 1.99, 2.0, 2.01, 5.0, 7.99, 8.0, 8.01, 20.0, 60.0])


def operator_of(name):
    return getattr(aten, f"special_{name}").default


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_positive_numbers(name, dtype):
    tolerance = 1e-4 if dtype is torch.float32 else 1e-7
    compare(operator_of(name), POSITIVE.to(dtype), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1"])
def test_negative_numbers_and_infinities(name):
    x = torch.cat([-POSITIVE, torch.tensor([0.0, NAN])])
    compare(operator_of(name), x, rtol=1e-4, atol=1e-4)
    limits = decompose(operator_of(name), torch.tensor([INF, -INF]))  # torch gives NaN
    torch.testing.assert_close(limits.abs(), torch.zeros(2))


@pytest.mark.parametrize("name", NAMES[2:])
def test_poles_and_numbers_outside(name):
    compare(operator_of(name), torch.tensor([0.0, -1.0, -8.5, NAN]))


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1"])
def test_operators_of_prims(name):
    x = torch.tensor([0.5, 3.0, 12.0])
    compare(getattr(torch.ops.prims, name).default, x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_airy(dtype):
    x = torch.cat([torch.linspace(-15, 12, 55), torch.tensor([103.0, 104.0, NAN])]).to(dtype)
    compare(aten.special_airy_ai.default, x, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("shape", [(), (0,), (2, 1)], ids=str)
def test_any_shape(shape):
    for name in NAMES:
        compare(operator_of(name), torch.full(shape, 3.0), rtol=1e-4, atol=1e-5)
