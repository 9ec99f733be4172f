"""Orthogonal polynomials of all degrees, beside eager torch."""

import pytest
import torch

from tests.aot.decompositions.eager import compare

aten = torch.ops.aten

CHEBYSHEV = [f"chebyshev_polynomial_{kind}" for kind in "tuvw"]
SHIFTED = [f"shifted_{name}" for name in CHEBYSHEV]
OTHERS = ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l"]
NAMES = [*CHEBYSHEV, *SHIFTED, *OTHERS, "legendre_polynomial_p"]
X = torch.tensor([-1.0, -0.9, -0.3, 0.0, 0.5, 0.99, 1.0])
DEGREES = torch.tensor([-1.0, 0.0, 1.0, 2.0, 3.0, 5.0, 8.0])[:, None]
TOLERANCE = {"rtol": 1e-3, "atol": 1e-3}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_each_degree(name, dtype):
    x = (X + 1) / 2 if name in SHIFTED else X
    compare(getattr(aten, f"special_{name}").default, x.to(dtype), DEGREES.to(dtype), **TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_in_place_of_tensors(name):
    packet = getattr(aten, f"special_{name}")
    compare(packet.n_scalar, torch.tensor([0.1, 0.9]), 3, **TOLERANCE)
    compare(packet.x_scalar, 0.3, torch.tensor([0.0, 1.0, 4.0]), **TOLERANCE)


@pytest.mark.parametrize("name", [*CHEBYSHEV, *OTHERS, "legendre_polynomial_p"])
def test_numbers_beyond_the_interval(name):
    compare(
        getattr(aten, f"special_{name}").default, torch.tensor([1.5, -1.5, 3.0]),
        torch.tensor([[2.0], [3.0]]), **TOLERANCE,
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_numbers(name):
    compare(getattr(aten, f"special_{name}").default, torch.zeros(0), torch.zeros(0))
