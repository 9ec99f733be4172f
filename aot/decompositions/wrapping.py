"""Wrap-around of integers into the range of an element type."""

from __future__ import annotations

import torch


def wrapped(number: int, dtype: torch.dtype) -> int:
    """Return the integer of a type that a number becomes, as torch converts it.

    Example:
        >>> wrapped(-1, torch.uint8), wrapped(200, torch.int8), wrapped(7, torch.int16)
        (255, -56, 7)
    """
    limits = torch.iinfo(dtype)
    return int((number - limits.min) % (1 << limits.bits) + limits.min)
