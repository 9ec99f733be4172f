"""Functions of float64 to its accuracy, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

INF, NAN = math.inf, math.nan
X = torch.tensor(
    [0.0, 1e-300, 1e-10, 0.3, 0.999, 1.0, 1.001, 2.0, 5.0, 26.0, 700.0, INF, NAN],
    dtype=torch.float64,
)
BOTH = torch.cat([X, -X])
TOLERANCE = {"rtol": 1e-11, "atol": 1e-300}


def test_the_error_function():
    compare(aten.erf.default, BOTH, **TOLERANCE)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
    x = torch.linspace(-6, 6, 31, dtype=torch.float64)
    compare(aten.gelu.default, x, approximate=approximate, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("operator", [aten.fmod, aten.remainder], ids=str)
@pytest.mark.parametrize("divisor", [0.3, -0.3, 2.0, INF, -INF, 0.0, NAN])
def test_remainders(operator, divisor):
    x = BOTH[BOTH.abs() != 1e-300]
    tolerance = {"rtol": 1e-9, "atol": 1e-9}
    compare(operator.Scalar, x, divisor, nested=True, **tolerance)
    compare(operator.Tensor, x, torch.full_like(x, divisor), nested=True, **tolerance)


@pytest.mark.parametrize("steps", [2, 3, 7, 100])
@pytest.mark.parametrize(("start", "end"), [(0, 1), (-3.5, 2), (5, -5), (1, 1)])
def test_evenly_spaced_numbers(steps, start, end):
    compare(aten.linspace.default, start, end, steps, dtype=torch.float64, rtol=1e-15, atol=1e-15)


def test_other_types_are_left_alone():
    x = torch.ones(2)
    assert decompose(aten.erf.default, x) is NotImplemented
    assert decompose(aten.gelu.default, x) is NotImplemented
    assert decompose(aten.linspace.default, 0, 1, 3, dtype=torch.float32) is NotImplemented
