"""Types that functions of real numbers compute in, and their limits."""

import math

import pytest
import torch

from pelton.aot.decompositions.real_types import ends_of, floating, in_single, of_reals


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        (torch.bool, torch.float32), (torch.uint8, torch.float32), (torch.int64, torch.float32),
        (torch.float16, torch.float16), (torch.float64, torch.float64),
    ],
    ids=str,
)  # fmt: skip
def test_integers_become_the_default_floating_type(dtype, wanted):
    assert floating(torch.ones(2, dtype=dtype)).dtype is wanted


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_half_precision_becomes_float32(dtype):
    wanted = torch.float64 if dtype is torch.float64 else torch.float32
    assert in_single(torch.ones(2, dtype=dtype)).dtype is wanted
    x = torch.ones(2, dtype=torch.int8)
    assert in_single(x) is x


def test_limits():
    assert ends_of(torch.float16) == (-math.inf, math.inf)
    assert ends_of(torch.int8) == (-128, 127)
    assert ends_of(torch.uint8) == (0, 255)
    assert ends_of(torch.int64) == (-(2**63), 2**63 - 1)


def test_functions_of_reals_compute_in_float32_and_return_the_type_of_their_argument():
    seen = []

    @of_reals
    def square(x: torch.Tensor) -> torch.Tensor:
        """Return x squared."""
        seen.append(x.dtype)
        return x * x

    types = (torch.float16, torch.int64, torch.float64)
    results = [square(torch.full((1,), 3, dtype=dtype)) for dtype in types]
    assert [result.dtype for result in results] == [torch.float16, torch.float32, torch.float64]
    assert seen == [torch.float32, torch.float32, torch.float64]
    assert all(result.item() == 9 for result in results)
    assert square(torch.ones(1, dtype=torch.complex64)) is NotImplemented
    assert square.__doc__ == "Return x squared."
