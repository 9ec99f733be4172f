"""Operators that move elements, in forms that the compiler takes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("movement")


@FAMILY.decomposes(aten.roll.default, reason="without dimensions it is refused")
def roll(x: Tensor, shifts: list[int], dims: list[int] | None = None) -> Any:
    """Return the rolled flat tensor in the old shape."""
    if dims:
        return NotImplemented
    return x.reshape(-1).roll(shifts, [0]).reshape(x.shape)
