"""Quotients and remainders of real numbers, which are rounded in the middle of no computation."""

import math

import pytest
import torch

INF, NAN = math.inf, math.nan
X = torch.tensor([1.0, -1.0, 5.0, 7.5, -7.5, 0.3, 1e30, -1e30, 3e8, INF, -INF, NAN, 0.0, 6.0, -6.0])
Y = torch.tensor([0.1, 0.1, -2.0, 2.5, 2.5, 0.1, 3.0, 7.0, 0.7, 2.0, 2.0, 2.0, 3.0, 0.0, INF])

FUNCTIONS = {
    "floor division": lambda x, y: x // y,
    "floor division by a number": lambda x, y: x // 0.1,
    "floor division by a negative number": lambda x, y: x // -0.3,
    "floor division of a number": lambda x, y: 7.0 // y,
    "floored quotient": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "truncated quotient": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "fmod": torch.fmod,
    "fmod by a number": lambda x, y: torch.fmod(x, 0.3),
    "remainder": torch.remainder,
    "remainder by a number": lambda x, y: x % 0.3,
    "remainder of a number": lambda x, y: torch.remainder(5.0, y),
    "floor division by an integer": lambda x, y: x // torch.tensor(3),
}


def test_quotients_and_remainders(check):
    check(FUNCTIONS, [X, Y])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_quotients_of_narrow_types(dtype, check):
    # torch rounds a quotient before it cuts it off in bfloat16, and not in float16
    known = {name: function for name, function in FUNCTIONS.items() if "truncated" not in name}
    check(known, [X.clamp(-100, 100).to(dtype), Y.to(dtype)])


def test_quotients_of_doubles(check):
    finite = X.double().clamp(-1e9, 1e9)
    check(FUNCTIONS, [finite, Y.double()])
