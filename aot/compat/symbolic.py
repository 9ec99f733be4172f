"""Symbolic sizes of torch: their ranges, their checks, and how a trace treats sizes 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.fx.experimental import _config as shape_config
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

__all__ = ["ValueRanges", "backed_size_oblivious", "bound_sympy", "check"]

check: Callable[..., None] = torch._check
"""`torch._check`: states a condition on sizes that a trace may rely on."""


def backed_size_oblivious(enabled: bool) -> AbstractContextManager[Any]:
    """Set whether traces treat sizes as if they were neither 0 nor 1, within a `with` block."""
    config: Any = shape_config
    patched: AbstractContextManager[Any] = config.patch(backed_size_oblivious=enabled)
    return patched
