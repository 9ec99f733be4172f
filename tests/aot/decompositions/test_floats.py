"""Functions of real and complex numbers in all widths, against torch."""

import math

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
            "two": lambda x: torch.fft.fft2(x).abs(),
            "back": lambda x: torch.fft.irfft(torch.fft.rfft(x), x.shape[-1]),
            "long": lambda x: torch.fft.fft(x.reshape(-1).repeat(5)[:180]).abs(),
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
