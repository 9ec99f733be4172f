"""The decomposition table in force, and how a user extends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from torch._decomp import get_decompositions, remove_decompositions
from torch._ops import OperatorBase, OpOverloadPacket

from . import (
    activations,
    attention,
    backward,
    bessel,
    booleans,
    chance,
    complexes,
    convolutions,
    data_dependent,
    dense,
    doubles,
    elementary,
    elimination,
    experts,
    flash_attention,
    fourier,
    gamma,
    indexing,
    integers,
    jacobi,
    movement,
    narrow_floats,
    narrow_integers,
    normalization,
    ordering,
    orthogonal,
    padding,
    polynomials,
    pooling,
    reductions,
    sampling,
    selections,
    sorting,
    special,
    windows,
)
from .dialect import torch_decompositions
from .family import DecompositionTable, Entry, chain

FAMILIES = (
    activations.FAMILY,
    attention.FAMILY,
    backward.FAMILY,
    pooling.FAMILY,
    convolutions.FAMILY,
    data_dependent.FAMILY,
    experts.FAMILY,
    flash_attention.FAMILY,
    fourier.FAMILY,
    padding.FAMILY,
    sampling.FAMILY,
    movement.FAMILY,
    complexes.FAMILY,
    narrow_floats.FAMILY,
    narrow_integers.FAMILY,
    normalization.FAMILY,
    booleans.FAMILY,
    integers.FAMILY,
    doubles.FAMILY,
    dense.FAMILY,
    elementary.FAMILY,
    elimination.FAMILY,
    indexing.FAMILY,
    ordering.FAMILY,
    reductions.FAMILY,
    sorting.FAMILY,
    orthogonal.FAMILY,
    jacobi.FAMILY,
    special.FAMILY,
    bessel.FAMILY,
    gamma.FAMILY,
    polynomials.FAMILY,
    selections.FAMILY,
    chance.FAMILY,
    windows.FAMILY,
)
"""Our own decompositions; where two share an operator, the earlier is asked first."""

_current: ContextVar[DecompositionTable | None] = ContextVar("aot_decompositions", default=None)


def _own_entries() -> tuple[Entry, ...]:
    entries = [entry for family in FAMILIES for entry in family.entries]
    return (*entries, *experts.entries_of_loaded_libraries())


@lru_cache(maxsize=2)
def _chained(entries: tuple[Entry, ...]) -> DecompositionTable:
    return chain(entries)


@lru_cache(maxsize=2)
def _standard(entries: tuple[Entry, ...]) -> DecompositionTable:
    return chain([*entries, *torch_decompositions()])


def corrections() -> DecompositionTable:
    """Return the decompositions without which a program would be refused or wrong."""
    return dict(_chained(_own_entries()))


def current_aot_decompositions() -> DecompositionTable:
    """Return a fresh copy of the decomposition table that exports use here and now.

    Example:
        >>> import torch
        >>> torch.ops.aten.relu.default in current_aot_decompositions()
        False
    """
    table = _current.get()
    return dict(_standard(_own_entries()) if table is None else table)


@contextmanager
def extend_aot_decompositions(
    *,
    from_current: bool = True,
    add_ops: Sequence[OperatorBase | OpOverloadPacket] | None = None,
    remove_ops: Sequence[OperatorBase | OpOverloadPacket] | None = None,
) -> Iterator[DecompositionTable]:
    """Change the decompositions for the exports inside a `with` block; blocks nest.

    Args:
        from_current: Start from the table in force, or from an empty one.
        add_ops: Operators to decompose as torch does.
        remove_ops: Operators to keep whole.

    Yields:
        The new table.

    Example:
        >>> import torch
        >>> with extend_aot_decompositions(add_ops=[torch.ops.aten.gelu]) as table:
        ...     torch.ops.aten.gelu.default in table
        True
    """
    table = current_aot_decompositions() if from_current else {}
    if add_ops:
        table.update(get_decompositions(add_ops))
    if remove_ops:
        remove_decompositions(table, list(remove_ops))  # type: ignore[arg-type]
    token = _current.set(table)
    try:
        yield table
    finally:
        _current.reset(token)
