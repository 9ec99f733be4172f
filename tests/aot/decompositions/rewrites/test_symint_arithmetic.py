"""Sizes computed from sizes."""

import math

import pytest
import torch

from pelton import aot

SHAPES = [(3, 5), (2, 7), (4, 2), (2, 4), (5, 3)]


def test_sizes_computed_from_sizes_are_exact(check):
    check(
        {
            "larger": lambda x: torch.arange(torch.sym_max(x.shape[0], x.shape[1])),
            "smaller": lambda x: torch.arange(torch.sym_min(x.shape[0], x.shape[1])),
            "modulo": lambda x: torch.arange(x.shape[1] % 3 + 1),
            "half": lambda x: torch.arange((x.shape[1] + 1) // 2),
            "rounded up": lambda x: torch.arange(math.ceil(x.shape[1] / 2)),
            "rounded down": lambda x: torch.arange(math.floor(x.shape[1] / 3) + 1),
            "three tenths": lambda x: torch.arange(math.ceil(x.shape[1] * 0.3)),
            "ratio": lambda x: torch.arange(math.floor(x.shape[1] / x.shape[0]) + 1),
            "chosen": lambda x: torch.arange(
                torch.sym_ite(x.shape[0] > x.shape[1], x.shape[1], x.shape[0])
            ),
            "power": lambda x: torch.arange(x.shape[1] ** 2),
            "mean": lambda x: x.sum(1) / x.shape[1],
        },
        *[[torch.randn(batch, length, 8)] for batch, length in SHAPES],
        dynamic=[{0: "batch", 1: "length"}],
    )


def test_a_size_that_needs_inexact_floats_is_refused_by_name():
    with pytest.raises(aot.UnsupportedOpError, match="symbolic types"):
        aot.export(
            lambda x: torch.arange(math.floor((x.shape[0] / x.shape[1]) ** 2) + 1),
            args=(torch.randn(3, 5),),
            dynamic_shapes={"x": {0: "a", 1: "b"}},
        )
