"""Decompositions of torch: its tables, and its implementations of operators by others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._decomp import (
    _should_decompose_because_unsafe_op,
    decomposition_table,
    get_decompositions,
    remove_decompositions,
)
from torch._export.utils import _get_decomp_for_cia
from torch._ops import OperatorBase, OpOverload

__all__ = [
    "composite_decomposition",
    "composite_names",
    "decomposable",
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


_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


@contextmanager
def decomposable(operators: Iterable[OperatorBase]) -> Iterator[Collection[OperatorBase]]:
    """Let decompositions of an exported program reach operators that torch would leave alone.

    Those are the operators with a kernel beside a composite form in Python, which is hidden inside
    the context. Yields these operators.
    """
    saved = {
        operator: dict(operator.py_kernels)
        for operator in operators
        if isinstance(operator, OpOverload)
        and _COMPOSITE in operator.py_kernels
        and not _should_decompose_because_unsafe_op(operator)  # it writes to its arguments
        and not torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), _COMPOSITE)  # type: ignore[no-untyped-call]
    }
    for operator in saved:
        for key in (_COMPOSITE, torch._C.DispatchKey.Autograd):
            operator.py_kernels.pop(key, None)
        operator._dispatch_cache.clear()
    try:
        yield saved.keys()
    finally:
        for operator, kernels in saved.items():
            operator.py_kernels.clear()
            operator.py_kernels.update(kernels)
            operator._dispatch_cache.clear()
