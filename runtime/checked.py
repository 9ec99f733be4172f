"""Checks of data from files: what breaks the rules of a format raises an `ArtifactError`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from .errors import ArtifactError


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
