"""Table of decompositions in force, and its extension by users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from ..compat.decomposition_tables import get_decompositions, remove_decompositions
from ..compat.operators import OperatorBase, OpOverloadPacket
from .attention import dense_attention, flash_attention
from .dialect import torch_decompositions
from .indexing import data_dependent, gather
from .linalg import cholesky, lu, products, qr, svd, triangular
from .nn import backward, moe, random_numbers
from .pointwise import (
    activations,
    bit_patterns,
    booleans,
    complex_numbers,
    elementary,
    foreach,
    half,
    integers,
    movement,
    narrow_integers,
    selections,
)
from .reductions import (
    distances,
    normalization,
    order_statistics,
    scans,
    scatter,
    sorting,
    statistics,
)
from .registry import DecompositionTable, Entry, chain
from .special import bessel, error_functions, float64, gamma, polynomials
from .windows import (
    antialias,
    convolutions,
    depthwise,
    fft,
    interpolate,
    padding,
    pooling,
    pooling_indices,
    signals,
)

FAMILIES = (
    activations.FAMILY,
    dense_attention.FAMILY,
    backward.FAMILY,
    pooling.FAMILY,
    depthwise.FAMILY,
    selections.FAMILY,
    signals.FAMILY,
    convolutions.FAMILY,
    data_dependent.FAMILY,
    moe.FAMILY,
    flash_attention.FAMILY,
    fft.FAMILY,
    padding.FAMILY,
    antialias.FAMILY,
    interpolate.FAMILY,
    movement.FAMILY,
    bit_patterns.FAMILY,
    complex_numbers.FAMILY,
    half.FAMILY,
    narrow_integers.FAMILY,
    normalization.FAMILY,
    booleans.FAMILY,
    integers.FAMILY,
    float64.FAMILY,
    cholesky.FAMILY,
    triangular.FAMILY,
    elementary.FAMILY,
    foreach.FAMILY,
    lu.FAMILY,
    gather.FAMILY,
    scans.FAMILY,
    order_statistics.FAMILY,
    distances.FAMILY,
    statistics.FAMILY,
    sorting.FAMILY,
    products.FAMILY,
    qr.FAMILY,
    svd.FAMILY,
    error_functions.FAMILY,
    bessel.FAMILY,
    gamma.FAMILY,
    polynomials.FAMILY,
    scatter.FAMILY,
    random_numbers.FAMILY,
    pooling_indices.FAMILY,
)
"""Our own decompositions; of entries of one operator, those of earlier families are tried first."""

_current: ContextVar[DecompositionTable | None] = ContextVar("aot_decompositions", default=None)


def _own_entries() -> tuple[Entry, ...]:
    entries = [entry for family in FAMILIES for entry in family.entries]
    return (*entries, *moe.entries_of_loaded_libraries())


@lru_cache(maxsize=2)
def _chained(entries: tuple[Entry, ...]) -> DecompositionTable:
    return chain(entries)


@lru_cache(maxsize=2)
def _standard(entries: tuple[Entry, ...]) -> DecompositionTable:
    return chain([*entries, *torch_decompositions()])


def corrections() -> DecompositionTable:
    """Return our own decompositions, without which a program would be refused or wrong."""
    return dict(_chained(_own_entries()))


def current_aot_decompositions() -> DecompositionTable:
    """Return a copy of the decomposition table that is in force in this context.

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
        remove_ops: Operators not to decompose.

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
