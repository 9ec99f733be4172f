"""Archive layout: the plan of a file to write, and checks of a file to read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..checked import require
from ..errors import ParameterError
from .parameter import Parameter

DATA_ALIGNMENT = 64
"""Alignment in bytes of the contents of parameters that we write: IREE uses them in place."""

_MAX_RANK = 32
_MAX_BYTES = 1 << 62


@dataclass(frozen=True)
class Plan:
    """A file to be written: its head, then the contents of parameters at offsets.

    Args:
        head: The first bytes of the file.
        contents: Offset from the start of the file and parameter, in ascending order. Gaps are
            filled with zeros.
        nbytes: The size of the file.
    """

    head: bytes
    contents: list[tuple[int, Parameter]]
    nbytes: int


def require_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return the shape of a tensor in a file.

    Raises:
        ArtifactError: They are not a list of numbers, or too many or too large for any memory.

    Example:
        >>> require_shape("weight", [2, 3])
        (2, 3)
    """
    sound = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
    require(sound, f"{name!r} has shape {shape!r:.80}, which is not a list of sizes")
    require(len(shape) <= _MAX_RANK, f"{name!r} has {len(shape)} dimensions")
    elements = math.prod(max(1, size) for size in shape)
    require(
        elements < _MAX_BYTES // 16, f"{name!r} has {elements} elements, more than memory holds"
    )
    return tuple(shape)


def require_disjoint(parameters: Iterable[tuple[int, int, str]]) -> None:
    """Refuse contents that overlap partially; one range with two names is a tied tensor.

    Args:
        parameters: Start, end (exclusive) and name of each parameter's contents.

    Raises:
        ArtifactError: Names the first two that overlap.
    """
    before: tuple[int, int, str] | None = None
    for span in sorted(span for span in parameters if span[0] < span[1]):
        if before is not None and span[0] < before[1]:
            same = span[:2] == before[:2]
            require(same, f"the contents of {before[2]!r} and {span[2]!r} overlap")
        before = span


def refuse_unstorable(kind: str, names: list[str]) -> None:
    """Refuse to write parameters whose element type a format cannot store.

    Raises:
        ParameterError: Names all of them.
    """
    if names:
        raise ParameterError(
            f"a {kind} file cannot hold the element type of: {', '.join(names)}; "
            "convert them, or choose another format"
        )
