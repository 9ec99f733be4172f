"""Decompositions of torch: its tables, and its implementations of operators by others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table, get_decompositions, remove_decompositions
from torch._export.utils import _get_decomp_for_cia
from torch._ops import OpOverload

__all__ = [
    "composite_decomposition",
    "composite_names",
    "decomposition_table",
    "get_decompositions",
    "remove_decompositions",
]


def composite_names() -> list[str]:
    """Return the names of the operators that torch implements by others, as `aten::add.Tensor`."""
    names: list[str] = torch._C._dispatch_get_registrations_for_dispatch_key(
        "CompositeImplicitAutograd"
    )
    return names


def composite_decomposition(operator: OpOverload) -> Callable[..., Any] | None:
    """Return how torch implements an operator by others; None where it has no such form."""
    return _get_decomp_for_cia(operator) if operator._can_decompose() else None
