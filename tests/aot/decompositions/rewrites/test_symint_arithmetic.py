"""Sizes computed from sizes."""

import math

import pytest
import torch

from pelton import aot
from tests.aot.decompositions.rewritten import rewritten, targets

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


A, B = (torch.export.Dim(name, min=2, max=40) for name in "ab")
FUNCTIONS = {
    "larger": lambda a, b: torch.sym_max(a, b),
    "smaller": lambda a, b: torch.sym_min(a, b),
    "modulo": lambda a, b: a % b + 1,
    "floored quotient": lambda a, b: a // b + 1,
    "rounded up": lambda a, b: math.ceil(a / b),
    "rounded down": lambda a, b: math.floor(a / 3) + 2,
    "three tenths": lambda a, b: math.ceil(a * 0.3) + 1,
    "chosen": lambda a, b: torch.sym_ite(a > b, a - b + 1, b),
    "both": lambda a, b: torch.sym_ite((a > 3) & (b > 3), a, b),
    "not": lambda a, b: torch.sym_ite(torch.sym_not(a > b), a, b),
    "cube": lambda a, b: a**3,
    "sum": lambda a, b: torch.sym_sum([a, b, a]),
    "truncated": lambda a, b: torch.sym_int(a * 1.5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rewritten_sizes_are_those_of_python(name):
    def function(x):
        return torch.ones(FUNCTIONS[name](x.shape[0], x.shape[1]), dtype=torch.bool)

    module = rewritten(function, torch.ones(5, 3), dynamic=({0: A, 1: B},))
    assert not {
        torch.sym_max,
        torch.sym_min,
        torch.sym_ite,
        math.floor,
        math.ceil,
        torch.sym_not,
    } & {*targets(module)}
    for a, b in ((5, 3), (2, 2), (3, 5), (2, 40), (40, 2), (7, 7), (39, 38)):
        x = torch.ones(a, b)
        assert module(x)[0].shape == function(x).shape, (a, b)


def test_means_divide_by_floats():
    module = rewritten(lambda x: x.sum() / x.shape[0], torch.ones(5), dynamic=({0: A},))
    torch.testing.assert_close(module(torch.ones(8))[0], torch.tensor(1.0))
