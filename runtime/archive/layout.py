"""What the archive formats share: where a writer puts things, and what a reader refuses."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import ArtifactError, ParameterError
from .parameter import Parameter

DATA_ALIGNMENT = 64
"""Where contents start in the files that we write: IREE uses such memory without copying it."""

_MAX_RANK = 32
_MAX_BYTES = 1 << 62


@dataclass(frozen=True)
class Plan:
    """A file to be written: its head, then each parameter's contents at an offset, in order.

    Args:
        head: The first bytes of the file.
        contents: Offset from the start of the file and parameter, by rising offset. What lies
            between is filled with zeros.
        nbytes: The size of the whole file.
    """

    head: bytes
    contents: list[tuple[int, Parameter]]
    nbytes: int


def align(offset: int, alignment: int) -> int:
    """Return the first multiple of `alignment` that is not below `offset`.

    Example:
        >>> align(65, 64)
        128
    """
    return -(-offset // alignment) * alignment


def require(condition: bool, message: str) -> None:
    """Refuse a file that breaks a rule of its format.

    Raises:
        ArtifactError: The condition does not hold.
    """
    if not condition:
        raise ArtifactError(message)


def require_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return the sizes of a tensor as a file states them.

    Raises:
        ArtifactError: They are no list of numbers, or too many or too large for any memory.

    Example:
        >>> require_shape("weight", [2, 3])
        (2, 3)
    """
    sound = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
    require(sound, f"{name!r} has shape {shape!r:.80}, which is no list of sizes")
    require(len(shape) <= _MAX_RANK, f"{name!r} has {len(shape)} dimensions")
    elements = math.prod(max(1, size) for size in shape)
    require(
        elements < _MAX_BYTES // 16, f"{name!r} has {elements} elements, more than memory holds"
    )
    return tuple(shape)


def require_json(what: str, text: bytes) -> dict[str, Any]:
    """Return the JSON object in `text`.

    Raises:
        ArtifactError: It is no JSON object in UTF-8, or it has one name twice.

    Example:
        >>> require_json("header", b'{"a": 1}')
        {'a': 1}
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        require_unique(name for name, _ in pairs)
        return dict(pairs)

    try:
        value = json.loads(text.decode(), object_pairs_hook=unique)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError(f"the {what} is no JSON: {str(error)[:200]}") from error
    require(isinstance(value, dict), f"the {what} is no JSON object")
    return dict(value)


def require_unique(names: Iterable[str]) -> None:
    """Refuse a name that comes twice.

    Raises:
        ArtifactError: Names all that do.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    require(not twice, f"these names occur more than once: {', '.join(map(repr, twice))}")


def require_disjoint(parameters: Iterable[tuple[int, int, str]]) -> None:
    """Refuse contents that overlap in part; the same range under two names is a tied tensor.

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
    """Refuse to write parameters whose element type the format has no word for.

    Raises:
        ParameterError: Names all of them.
    """
    if names:
        raise ParameterError(
            f"a {kind} file cannot hold the element type of: {', '.join(names)}; "
            "convert them, or choose another format"
        )
