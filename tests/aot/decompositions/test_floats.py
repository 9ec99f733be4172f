"""Functions of real and complex numbers in all widths, against torch."""

import math

import pytest
import torch
import torch.nn.functional as F


def test_float64_keeps_its_accuracy(check):
    torch.manual_seed(0)
    check(
        {
            "erf": torch.erf,
            "tanh": torch.tanh,
            "gelu": F.gelu,
            "remainder": lambda x: x % 0.3,
            "constants": lambda x: x + 1.1,
            "spaced": lambda x: torch.linspace(0, 1, 7, dtype=torch.float64) + x,
            "softmax": lambda x: x.softmax(0),
        },
        [torch.randn(7, dtype=torch.float64)],
    )


def test_special_functions_agree_with_torch(check):
    x = torch.cat([torch.linspace(-6.7, 6.7, 41), torch.tensor([1e-3, 20.0])])
    check(
        {
            "digamma": torch.digamma,
            "lgamma": torch.lgamma,
            "erfc": torch.erfc,
            "i0": lambda x: torch.special.i0e(x),
            "i1": lambda x: torch.special.i1e(x),
            "erfinv": lambda x: torch.erfinv(x / 25),
            "log10": lambda x: torch.log10(x.abs()),
            "copysign": lambda x: torch.copysign(x, x.flip(0)),
        },
        [x],
    )


def test_complex_arithmetic_is_that_of_torch(check):
    torch.manual_seed(0)
    x, y = (torch.randn(5, dtype=torch.complex64) for _ in range(2))
    check(
        {
            "sum": lambda x, y: x + y,
            "difference": lambda x, y: x - 2 * y,
            "product": lambda x, y: x * y,
            "quotient": lambda x, y: x / y,
            "size": lambda x, y: x.abs(),
            "angle": lambda x, y: x.angle(),
            "exponential": lambda x, y: x.exp(),
            "root": lambda x, y: x.sqrt(),
            "conjugate": lambda x, y: x.conj() * 1,
            "total": lambda x, y: x.sum(),
        },
        [x, y],
    )


def test_fourier_transforms_agree_with_torch(check):
    torch.manual_seed(0)
    check(
        {
            "real": lambda x: torch.view_as_real(torch.fft.rfft(x)),
        },
        [torch.randn(6, 9)],
    )


@pytest.mark.deep
def test_more_fourier_transforms_agree_with_torch(check):
    torch.manual_seed(0)
    check(
        {
            "two": lambda x: torch.fft.fft2(x[:3, :5]).abs(),
            "back": lambda x: torch.fft.irfft(torch.fft.rfft(x), x.shape[-1]),
            "long": lambda x: torch.fft.fft(x.reshape(-1)[:45]).abs(),
        },
        [torch.randn(6, 9)],
    )


def test_constants_are_compared_as_floats(check):
    check(
        {
            "less": lambda x: torch.where(torch.full_like(x, 2.0) < 1, 3.0, x),
            "more": lambda x: torch.where(torch.full_like(x, 2.0) > 1, math.inf, x),
        },
        [torch.rand(5)],
    )


def test_padding_that_cuts_and_wraps_is_that_of_torch(check):
    check(
        {
            "moved": lambda x: F.pad(x, (0, 0, 1, -1)),
            "cut": lambda x: F.pad(x, (-1, -1, -1, 2), value=2.0),
            "reflect": lambda x: F.pad(x, (2, 1), mode="reflect"),
            "circular": lambda x: F.pad(x, (2, 1), mode="circular"),
            "strided to one": lambda x: F.conv1d(x[:, :, :2], torch.ones(3, 5, 3), None, 2, 1),
            "no batch": lambda x: F.conv1d(x[0], torch.ones(3, 5, 3)),
            "resized": lambda x: F.interpolate(x, scale_factor=1.7, mode="linear"),
        },
        [torch.randn(2, 5, 6)],
    )


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -0.5, 2.5, 3.0, -3.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_powers_and_angles_of_all_signs_are_those_of_torch(check, dtype):
    x = torch.tensor(SPECIAL, dtype=dtype)[:, None].expand(-1, len(SPECIAL)).contiguous()
    check(
        {
            "power": torch.pow,
            "power of 0": lambda x, y: 0.0**y,
            "power of -2": lambda x, y: (-2.0) ** y,
            "power of 1": lambda x, y: 1.0**y,
            "inverse cube": lambda x, y: x**-3,
            "sign of the inverse": lambda x, y: torch.signbit(x**-1),
            "angle": torch.atan2,
            "sign of the angle": lambda x, y: torch.signbit(torch.atan2(x, y).nan_to_num()),
        },
        [x, x.T.contiguous()],
    )


def test_powers_in_float64_keep_their_accuracy(check):
    torch.manual_seed(0)
    x, y = (torch.randn(9, dtype=torch.float64) * 4 for _ in range(2))
    check({"power": lambda x, y: x.abs() ** y, "whole": lambda x, y: x ** y.round()}, [x, y])


def test_sums_over_constants_of_sizes_that_vary(check):
    check(
        {
            "ones": lambda x: torch.ones(x.shape).sum(),
            "ones of int64": lambda x: torch.ones(x.shape, dtype=torch.int64).sum(1),
            "zeros": lambda x: torch.zeros(x.shape).exp().sum(),
            "new ones": lambda x: x.new_ones(x.shape).norm(),
            "new zeros": lambda x: (x.new_zeros(x.shape) == 0).sum(),
            "truth": lambda x: torch.ones(x.shape, dtype=torch.bool).sum(),
            "variance": lambda x: torch.masked.var(x),
        },
        *[[torch.randn(sizes)] for sizes in ((5, 6), (9, 4))],
        dynamic=[{0: "a", 1: "b"}],
    )
