"""Sizes of traced tensors: how MLIR spells a dynamic one, and how two of them compare."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler.ir import ShapedType

DYNAMIC: int = ShapedType.get_dynamic_size()
"""MLIR's number for a dynamic size."""


def is_dynamic(size: int) -> bool:
    """Return whether a size of an MLIR type is dynamic.

    Example:
        >>> is_dynamic(DYNAMIC), is_dynamic(3)
        (True, False)
    """
    return size == DYNAMIC


def render_shape(shape: Sequence[int]) -> str:
    """Return a shape of an MLIR type as text.

    Example:
        >>> render_shape([4, DYNAMIC])
        '4, ?'
    """
    return ", ".join("?" if is_dynamic(size) else str(size) for size in shape)
