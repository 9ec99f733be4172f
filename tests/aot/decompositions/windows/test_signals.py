"""Window functions of signals, beside eager torch."""

from __future__ import annotations

import pytest
import torch

from tests.aot.decompositions.eager import compare

aten = torch.ops.aten

OVERLOADS = [
    (aten.hann_window, {"default": (), "periodic": (False,)}),
    (
        aten.hamming_window,
        {"periodic_alpha": (True, 0.4), "periodic_alpha_beta": (False, 0.4, 0.6)},
    ),
    (aten.blackman_window, {"default": (), "periodic": (False,)}),
    (aten.bartlett_window, {"default": (), "periodic": (False,)}),
    (aten.kaiser_window, {"default": (), "beta": (False, 5.0)}),
]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 12, 400])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_window(length: int, dtype: torch.dtype) -> None:
    for packet, overloads in OVERLOADS:
        for name, args in overloads.items():
            close = 2e-6 if dtype is torch.float32 else 1e-12
            compare(getattr(packet, name), length, *args, dtype=dtype, rtol=close, atol=close)


def test_compiled_windows(check):
    check(
        {
            "hann": lambda x: torch.hann_window(12) * x,
            "hamming": lambda x: torch.hamming_window(12, periodic=False) * x,
            "kaiser": lambda x: torch.kaiser_window(12) * x,
        },
        [torch.ones(12)],
    )
