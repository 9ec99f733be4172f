"""Sizes of dimensions: static ones are Python integers, dynamic ones anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def is_static(size: object) -> TypeIs[int]:
    """Return whether a size is known at export: an integer, not a symbol, a value or None.

    Example:
        >>> is_static(0), is_static(None), is_static("batch")
        (True, False, False)
    """
    return isinstance(size, int)
