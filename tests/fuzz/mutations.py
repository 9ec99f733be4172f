"""Changes of files: random ones for bytes, and such of the structure for JSON."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from typing import Any

Mutator = Callable[[bytes, random.Random], bytes]
"""Returns a changed file; the same for the same state of the random numbers."""

_INTERESTING = (0, 1, 2, 7, 8, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**62,
                2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """Change a file in one to four places: mostly early, where formats have their heads."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not changed:
            break
        chance.choice(_CHANGES)(changed, chance)
    return bytes(changed)


def _place(data: bytearray, chance: random.Random) -> int:
    end = min(len(data), 512) if chance.random() < 0.5 else len(data)
    return chance.randrange(end)


def _flip(data: bytearray, chance: random.Random) -> None:
    data[_place(data, chance)] ^= 1 << chance.randrange(8)


def _set(data: bytearray, chance: random.Random) -> None:
    data[_place(data, chance)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))


def _number(data: bytearray, chance: random.Random) -> None:
    """Put a number that is a limit of something where one may be."""
    width, code = chance.choice(((2, "<H"), (4, "<I"), (8, "<Q")))
    at = _place(data, chance) // width * width
    number = struct.pack(code, chance.choice(_INTERESTING) % (1 << 8 * width))
    data[at : at + width] = number[: len(data) - at]


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def _remove(data: bytearray, chance: random.Random) -> None:
    at = _place(data, chance)
    del data[at : at + chance.choice((1, 2, 4, 8, 64))]


def _insert(data: bytearray, chance: random.Random) -> None:
    at = _place(data, chance)
    data[at:at] = chance.randbytes(chance.choice((1, 2, 4, 8, 64)))


def _copy(data: bytearray, chance: random.Random) -> None:
    """Copy a piece over another place."""
    length = chance.randint(1, 64)
    source, at = _place(data, chance), _place(data, chance)
    data[at : at + length] = data[source : source + length]


_CHANGES = (_flip, _flip, _set, _set, _number, _number, _cut, _remove, _insert, _copy)

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**63, 2**70, -(2**70), 1e308, float("nan"), float("inf"), "",
    "x", "../../etc/passwd", "float32", "?", "\0", "é" * 300, [], {}, [[]], ["*", 2, "n"],
    ["list", [0]], {"a": 1}, "__import__('os')",
)  # fmt: skip


def mutate_json(data: bytes, chance: random.Random) -> bytes:
    """Change a JSON text: its values, its structure, or now and then its bytes."""
    if chance.random() < 0.2:
        return mutate_bytes(data, chance)
    document = [json.loads(data)]
    for _ in range(chance.randint(1, 3)):
        owner, key = chance.choice(list(_places(document)))
        _change(owner, key, chance)
    text = json.dumps(document[0]).encode()
    if chance.random() < 0.05:  # deeper than any reader goes
        return text.replace(b"[", b"[" * 5000, 1).replace(b"]", b"]" * 5000, 1)
    return text


def _places(value: Any) -> Any:
    """Yield each container in a document with each key of it."""
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _change(owner: Any, key: Any, chance: random.Random) -> None:
    kind = chance.randrange(6)
    if kind == 0 and len(owner) > 1:
        del owner[key]
    elif kind == 1 and isinstance(owner, dict):
        owner[chance.choice(("", "x", "format", "../x", str(key) * 2))] = owner.pop(key)
    elif kind == 2:
        owner[key] = [owner[key]]
    elif kind == 3 and isinstance(owner[key], str):
        owner[key] = owner[key][: chance.randrange(len(owner[key]) + 1)] + chance.choice("x.:/\0é")
    elif kind == 4:
        owner[key] = [owner[key], owner[key]]
    else:
        owner[key] = chance.choice(_VALUES)
