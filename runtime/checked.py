"""Checks of data from files: what breaks the rules of a format raises an `ArtifactError`."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import ArtifactError

T = TypeVar("T")

JSON_NAME = "json_name"
"""Key of a dataclass field's metadata with its name in JSON, where that is not its own."""

_SCALARS = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    NoneType: "null",
}


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
        ArtifactError: It is not a JSON object in UTF-8, or it has a name twice.

    Example:
        >>> require_json("header", b'{"a": 1}')
        {'a': 1}
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        require_unique(name for name, _ in pairs)
        return dict(pairs)

    try:
        value = json.loads(text.decode(), object_pairs_hook=unique)
    except ArtifactError:
        raise
    except (RecursionError, ValueError) as error:
        raise ArtifactError(f"the {what} is not JSON: {str(error)[:200]}") from error
    require(isinstance(value, dict), f"the {what} is not a JSON object")
    return dict(value)


def require_unique(names: Iterable[str]) -> None:
    """Refuse duplicate names.

    Raises:
        ArtifactError: Lists the duplicates.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    require(not twice, f"these names occur more than once: {', '.join(map(repr, twice))}")


@dataclass(frozen=True)
class Decoder:
    """Decodes JSON values into dataclasses, strictly by the annotations of their fields.

    Annotations may be `str`, `bool`, `int`, `float`, `None`, `Any`, literals, tuples (arrays),
    mappings (objects), dataclasses (objects with exactly their fields), an optional one of these,
    and unions of scalars.

    Args:
        rows: The dataclasses that are arrays of their fields instead of objects.
        hooks: Functions that decode the values of other annotations; they raise `ValueError`.

    Example:
        >>> @dataclass(frozen=True)
        ... class Span:
        ...     start: int
        ...     names: tuple[str, ...]
        >>> Decoder().decode(Span, {"start": 2, "names": ["a"]}, "span")
        Span(start=2, names=('a',))
        >>> Decoder(rows=frozenset([Span])).decode(Span, [2, [None]], "span")
        Traceback (most recent call last):
        ...
        pelton.runtime.errors.ArtifactError: span.names[0] is None, expected a string
    """

    rows: frozenset[type] = frozenset()
    hooks: Mapping[Any, Callable[[Any], Any]] = field(default_factory=dict)

    def decode(self, kind: type[T], data: Any, path: str) -> T:
        """Return an object of a type.

        Args:
            kind: The type.
            data: The JSON value.
            path: The place of the value, which error messages begin with.

        Raises:
            ArtifactError: Names the place of a value that does not fit, and what was expected.
        """
        decoded: T = self._decode(kind, data, path)
        return decoded

    def _decode(self, kind: Any, data: Any, path: str) -> Any:
        if kind in self.hooks:
            try:
                return self.hooks[kind](data)
            except (ValueError, RecursionError) as error:
                raise ArtifactError(f"{path}: {error}") from error
        origin, parts = get_origin(kind), get_args(kind)
        if kind is Any:
            return data
        if origin in (Union, UnionType) and not _is_scalar(kind):
            (part,) = (part for part in parts if part is not NoneType)
            return None if data is None else self._decode(part, data, path)
        if origin is tuple:
            return self._tuple(parts, data, path)
        if origin in (dict, Mapping):
            return self._mapping(parts, data, path)
        if dataclasses.is_dataclass(kind):
            return self._dataclass(kind, data, path)
        if not _fits(kind, data):
            raise _unexpected(path, data, _description(kind))
        return data

    def _tuple(self, parts: tuple[Any, ...], data: Any, path: str) -> tuple[Any, ...]:
        variadic = parts[1:] == (Ellipsis,)
        if not isinstance(data, list) or (not variadic and len(data) != len(parts)):
            raise _unexpected(path, data, "an array" if variadic else f"an array of {len(parts)}")
        kinds = [parts[0]] * len(data) if variadic else parts
        places = (f"{path}[{index}]" for index in range(len(data)))
        return tuple(map(self._decode, kinds, data, places))

    def _mapping(self, parts: tuple[Any, ...], data: Any, path: str) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise _unexpected(path, data, "an object")
        key, kind = parts
        places = {name: f"{path}[{name!r}]" for name in data}
        return {
            self._decode(key, name, places[name]): self._decode(kind, item, places[name])
            for name, item in data.items()
        }

    def _dataclass(self, kind: Any, data: Any, path: str) -> Any:
        known = _fields(kind)
        if kind in self.rows:
            if not isinstance(data, list) or len(data) != len(known):
                raise _unexpected(path, data, f"an array of {', '.join(known)}")
            data = dict(zip(known, data, strict=True))
        elif not isinstance(data, dict):
            raise _unexpected(path, data, "an object")
        missing, unknown = sorted(known.keys() - data), sorted(data.keys() - known)
        require(not missing, f"{path} lacks {', '.join(map(repr, missing))}")
        require(not unknown, f"{path} has unknown {', '.join(map(repr, unknown))}")
        values = {
            name: self._decode(annotation, data[stated], f"{path}.{stated}")
            for stated, (name, annotation) in known.items()
        }
        return kind(**values)


@functools.cache
def _fields(kind: type) -> dict[str, tuple[str, Any]]:
    """Return the name and annotation of each field of a dataclass by its name in JSON."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        each.metadata.get(JSON_NAME, each.name): (each.name, hints[each.name])
        for each in dataclasses.fields(kind)
    }


def _is_scalar(kind: Any) -> bool:
    return all(part in _SCALARS for part in (get_args(kind) or (kind,)))


def _fits(kind: Any, data: Any) -> bool:
    """Tell whether a value is of a scalar type, one of a union, or one of the literals."""
    if get_origin(kind) is Literal:
        return any(type(data) is type(value) and data == value for value in get_args(kind))
    kinds = get_args(kind) or (kind,)
    return type(data) in kinds or (type(data) is int and float in kinds)


def _description(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(repr, get_args(kind)))}"
    return " or ".join(_SCALARS[part] for part in (get_args(kind) or (kind,)))


def _unexpected(path: str, data: Any, expected: str) -> ArtifactError:
    return ArtifactError(f"{path} is {data!r:.80}, expected {expected}")
