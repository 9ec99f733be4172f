"""Symbolic sizes of torch: their ranges, their checks, and how a trace treats sizes 0 and 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch.fx.experimental import _config as shape_config
from torch.fx.experimental import symbolic_shapes
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

__all__ = ["ValueRanges", "backed_size_oblivious", "bound_sympy", "check"]

check: Callable[..., None] = torch._check
"""`torch._check`: states a condition on sizes that a trace may rely on."""


@contextmanager
def backed_size_oblivious(enabled: bool, *, positive: bool = False) -> Iterator[None]:
    """Set whether traces treat sizes as if they were neither 0 nor 1, within a `with` block.

    Args:
        enabled: Whether they do.
        positive: Whether the symbols of sizes are positive, as torch takes them even where their
            range begins at 0; otherwise they are not negative.
    """
    config: Any = shape_config
    before = _shapes.make_symbol
    with config.patch(backed_size_oblivious=enabled):
        _shapes.make_symbol = _torch_make_symbol if positive or not enabled else _make_symbol
        try:
            yield
        finally:
            _shapes.make_symbol = before


_shapes: Any = symbolic_shapes
_torch_make_symbol: Callable[..., sympy.Symbol] = _shapes.make_symbol


def _make_symbol(prefix: Any, index: int, **assumptions: Any) -> sympy.Symbol:
    if prefix is _shapes.SymT.SIZE and assumptions.pop("positive", None):
        assumptions["nonnegative"] = True
    return _torch_make_symbol(prefix, index, **assumptions)
