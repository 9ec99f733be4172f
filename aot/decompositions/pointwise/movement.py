"""Data movement in forms that the compiler lowers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("movement")


@FAMILY.decomposes(aten.roll.default, reason="refused without `dims`")
def roll(x: Tensor, shifts: list[int], dims: list[int] | None = None) -> Any:
    """`roll` without `dims`: a roll of the flattened tensor."""
    if dims:
        return NotImplemented
    return x.reshape(-1).roll(shifts, [0]).reshape(x.shape)
