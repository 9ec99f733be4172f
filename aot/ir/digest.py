"""What a compile depends on, as one key: the module with its weights, the target, its options.

The key covers the module to the byte, with the source lines that it states: an artifact holds them
too, so one from the cache is the one that the compiler would have made. Editing a line above a
model is therefore a miss, which costs a compile; never the other way round.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from iree.compiler.ir import Operation

from pelton.runtime.archive.parameter_set import ParameterSet
from pelton.runtime.artifacts.vmfb import ParameterTable

_ELIDED_CHARS = 1 << 16
"""Hexadecimal digits from which a resource is left out of the module's text (32 KB of data)."""

_SECTION = b"\n{-#"
_REFERENCE = re.compile(rb"dense_resource<([^>]+)>")
_DEFINITION = re.compile(rb'^ +([^\s:]+): "0x', re.MULTILINE)

THREADS = min(4, os.cpu_count() or 1)
"""How many threads hash and copy large data; both run outside Python's lock."""


class Resources:
    """The large data of a module (its inline weights) by name, and their checksums.

    The data is what the module itself holds: it is shared, never changes, and is hashed once.

    Args:
        data: The bytes of each resource by its name in the module.

    Attributes:
        data: The same.
    """

    def __init__(self, data: Mapping[str, bytes]) -> None:
        self.data = data
        self._digests: dict[str, str] = {}

    def digests(self) -> Mapping[str, str]:
        """Return the SHA-256 of each resource.

        Example:
            >>> Resources({"w": b"abc"}).digests()["w"][:8]
            'ba7816bf'
        """
        missing = [name for name in self.data if name not in self._digests]
        if missing:
            with ThreadPoolExecutor(THREADS) as pool:
                hashed = pool.map(lambda name: _sha256(self.data[name]), missing)
                self._digests.update(zip(missing, hashed, strict=True))
        return self._digests


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def module_digest(module_op: Operation, resources: Resources) -> str:
    """Return the SHA-256 of a module: of its text with locations, and of its weights.

    Args:
        module_op: The module.
        resources: The large data that is known; a module that has other is hashed as bytecode.

    Returns:
        The digest as hexadecimal digits. Equal modules have equal digests in every process.
    """
    printed = io.BytesIO()
    module_op.print(
        file=printed, binary=True, enable_debug_info=True, large_resource_limit=_ELIDED_CHARS
    )
    text = printed.getvalue()
    start = text.rfind(_SECTION)
    spelled_out = set(_DEFINITION.findall(text, start)) if start >= 0 else set()
    left_out = sorted(name.decode() for name in set(_REFERENCE.findall(text)) - spelled_out)
    known = resources.digests() if left_out else {}
    if any(name not in known for name in left_out):
        return _bytecode_digest(module_op)
    digest = hashlib.sha256(text)
    for name in left_out:
        digest.update(f"\n{name}={known[name]}".encode())
    return digest.hexdigest()


def parameters_digest(sets: Mapping[str, ParameterSet], table: ParameterTable) -> str:
    """Return the SHA-256 of the external parameters that a module takes.

    Args:
        sets: The parameters, by scope.
        table: Those that the module takes.

    Returns:
        The digest as hexadecimal digits; those that are not there have none.
    """
    found = [
        (scope, name, sets[scope][name])
        for scope in sorted(table)
        for name in sorted(table[scope])
        if scope in sets and name in sets[scope]
    ]
    digest = hashlib.sha256()
    with ThreadPoolExecutor(THREADS) as pool:
        hashed = pool.map(lambda each: _sha256(each[2].contents()), found)
        for (scope, name, parameter), value in zip(found, hashed, strict=True):
            digest.update(json.dumps([scope, name, str(parameter), value]).encode())
    return digest.hexdigest()


class _Hashing:
    """A file that only hashes what is written to it."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return len(data)


def _bytecode_digest(module_op: Operation) -> str:
    file = _Hashing()
    module_op.write_bytecode(file)
    return file.sha256.hexdigest()


def compile_key(module: str, identity: Mapping[str, Any]) -> str:
    """Return the key of a compile.

    Args:
        module: The module's digest.
        identity: What else decides the result, as JSON: target, options, versions.

    Example:
        >>> compile_key("0" * 64, {"target": "cpu"}) == compile_key("0" * 64, {"target": "cuda"})
        False
    """
    text = json.dumps([module, identity], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
