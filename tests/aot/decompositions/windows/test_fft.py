"""Fourier transforms of any length and normalisation, beside eager torch."""

import pytest
import torch

from tests.aot.decompositions.eager import compare

aten = torch.ops.aten

LENGTHS = [1, 2, 3, 7, 8, 127, 130, 131, 256]
TOLERANCE = {
    torch.float32: {"rtol": 1e-3, "atol": 1e-3},
    torch.float64: {"rtol": 1e-9, "atol": 1e-9},
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_transforms_of_any_length(length, dtype):
    torch.manual_seed(0)
    x = torch.randn(2, length, dtype=dtype)
    z = torch.complex(x, x.flip(0))
    for forward in (True, False):
        compare(aten._fft_c2c.default, z, [1], 0, forward, **TOLERANCE[dtype])
    for onesided in (True, False):
        compare(aten._fft_r2c.default, x, [1], 0, onesided, **TOLERANCE[dtype])


@pytest.mark.parametrize("normalization", [0, 1, 2])
@pytest.mark.parametrize("dims", [[0], [1, 2], [0, 2], [2, 0]], ids=str)
def test_normalisations_over_dimensions(normalization, dims):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4)
    tolerance = TOLERANCE[torch.float32]
    compare(aten._fft_c2c.default, torch.complex(x, -x), dims, normalization, True, **tolerance)
    compare(aten._fft_r2c.default, x, dims, normalization, True, **tolerance)


@pytest.mark.parametrize("length", [1, 2, 5, 6, 7])
@pytest.mark.parametrize("normalization", [0, 1, 2])
def test_inverses_of_one_sided_transforms(length, normalization):
    torch.manual_seed(0)
    half = length // 2 + 1
    z = torch.randn(3, half, dtype=torch.complex64)
    tolerance = TOLERANCE[torch.float32]
    compare(aten._fft_c2r.default, z, [1], normalization, length, **tolerance)
    compare(aten._fft_c2r.default, z, [0, 1], normalization, length, **tolerance)
