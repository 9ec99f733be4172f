"""Selections between values of different sizes, beside eager torch."""

from __future__ import annotations

import torch

VECTOR, ONE = torch.arange(3.0), torch.tensor(2.0)

PROGRAMS = {
    "one value twice": lambda x, s: torch.where(x > 0, s, s).flip(0),
    "a row twice": lambda x, s: torch.where(x[:, None] > s, x, x),
    "of one size": lambda x, s: torch.where(x > 1, x, x),
    "lerp from a scalar": lambda x, s: torch.lerp(s, x, 0.3),
    "lerp by a vector": lambda x, s: torch.lerp(s, s * 3, x),
    "lerp of columns": lambda x, s: torch.lerp(x[:, None], x[:, None] * 2, x),
    "lerp to a scalar": lambda x, s: torch.lerp(x, s, x) + torch.lerp(x, x * 2, s),
}


def test_operands_are_broadcast(check):
    check(PROGRAMS, [VECTOR, ONE])
