"""IREE parameter archives (`.irpa`): reader and layout.

A header, a table of entries, the names and metadata, and the contents; all numbers little-endian,
all offsets relative to the header. Several archives may be chained in one file. The format has no
element type and shape: they are a JSON text in each entry's metadata, in the spelling of
iree-turbine, which IREE's own Python readers know too.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from ..checked import align, require, require_json, require_unique
from ..errors import ArtifactError
from .layout import DATA_ALIGNMENT, Plan, refuse_unstorable, require_disjoint, require_shape
from .parameter import Parameter, size_in_bytes

# magic, version (major, minor), header size, next header, flags, entry count, and offset and
# length of each of the three segments: entries, metadata, contents
_HEADER = struct.Struct("<4sHHQQQQQQQQQQ")
# entry size, type, flags, name (offset, length), metadata (offset, length), minimum alignment
_ENTRY = struct.Struct("<QIQQQQQQ")
_RANGE = struct.Struct("<QQ")
# length, pattern, length of the pattern
_SPLAT = struct.Struct("<Q16sB")

_MAGIC = b"IRPA"
_SKIPPED_TYPE, _SPLAT_TYPE, _DATA_TYPE = 0, 1, 2
_TABLE_ALIGNMENT = 16
_FILE_ALIGNMENT = 4096
_METADATA_PREFIXES = (b"PYTORCH:", b"TENSORv0:")


def read(memory: NDArray[np.uint8]) -> list[Parameter]:
    """Return the parameters in the bytes of an archive; their contents are not touched.

    Raises:
        ArtifactError: The bytes are not a valid archive.
    """
    parameters: list[Parameter] = []
    spans: list[tuple[int, int, str]] = []
    base = budget = 0
    while True:
        require(base + _HEADER.size <= len(memory), f"it ends within the header at byte {base}")
        magic, major, minor, size, following, _, count, *ranges = _HEADER.unpack_from(
            memory.data, base
        )
        require(magic == _MAGIC, f"there is no archive header at byte {base}")
        require((major, minor) == (0, 0), f"its version is {major}.{minor}; known is 0.0")
        require(size == _HEADER.size, f"its header claims {size} bytes, not {_HEADER.size}")
        archive = memory[base:]
        entries = _part(archive, ranges[0], ranges[1], "table of entries")
        texts = _part(archive, ranges[2], ranges[3], "texts")
        storage = _part(archive, ranges[4], ranges[5], "contents")
        # Valid files share no entries and no texts, so that the work is bounded by their size.
        budget += count * _ENTRY.size
        require(budget <= len(memory), f"it claims {count} entries, more than fit into the file")
        offset = 0
        for _ in range(count):
            entry = _Entry(entries[offset:], texts)
            offset += align(entry.nbytes, _TABLE_ALIGNMENT)
            budget += entry.text_bytes
            require(budget <= len(memory), "its names and metadata are longer than the file")
            if entry.kind == _SKIPPED_TYPE:
                continue
            parameters.append(entry.splat() if entry.kind == _SPLAT_TYPE else entry.data(storage))
            if entry.kind == _DATA_TYPE:
                start = base + ranges[4] + entry.start
                spans.append((start, start + parameters[-1].nbytes, entry.name))
        if not following:
            break
        base += following
    require_unique(parameter.name for parameter in parameters)
    require_disjoint(spans)
    return parameters


def plan(parameters: list[Parameter]) -> Plan:
    """Lay out an archive; parameters that share memory are stored once.

    Raises:
        ParameterError: An element type is not known.
    """
    refuse_unstorable(".irpa", [str(p) for p in parameters if p.type_name and p.dtype is None])
    entries, texts = bytearray(), bytearray()
    contents: list[tuple[int, Parameter]] = []
    stored: dict[Hashable, int] = {}
    end = 0
    for parameter in parameters:
        entries += bytes(align(len(entries), _TABLE_ALIGNMENT) - len(entries))
        name, about = parameter.name.encode(), metadata(parameter).encode()
        text = (len(texts), len(name), len(texts) + len(name) if about else 0, len(about))
        texts += name + about
        if parameter.splat:
            pattern = parameter.data.tobytes()  # type: ignore[union-attr]
            kind, alignment = _SPLAT_TYPE, 0
            rest = _SPLAT.pack(parameter.nbytes, pattern, len(pattern))
        else:
            start = stored.setdefault(parameter.identity() or name, align(end, DATA_ALIGNMENT))
            if start >= end:
                contents.append((start, parameter))
                end = start + parameter.nbytes
            kind, alignment = _DATA_TYPE, DATA_ALIGNMENT
            rest = _RANGE.pack(start, parameter.nbytes)
        entries += _ENTRY.pack(_ENTRY.size + len(rest), kind, 0, *text, alignment) + rest
    table_start = align(_HEADER.size, _TABLE_ALIGNMENT)
    texts_start = table_start + len(entries)
    contents_start = align(texts_start + len(texts), DATA_ALIGNMENT)
    header = _HEADER.pack(
        _MAGIC, 0, 0, _HEADER.size, 0, 0, len(parameters),
        table_start, len(entries), texts_start, len(texts), contents_start, end,
    )  # fmt: skip
    head = header + bytes(table_start - len(header)) + bytes(entries) + bytes(texts)
    placed = [(contents_start + start, parameter) for start, parameter in contents]
    return Plan(head, placed, align(contents_start + end, _FILE_ALIGNMENT))


def metadata(parameter: Parameter) -> str:
    """Return the text with the element type and shape of an entry; empty for a blob.

    Example:
        >>> metadata(Parameter("a", "int8", (2,), 2, np.zeros(2, np.int8)))
        'PYTORCH:{"type": "Tensor", "dtype": "int8", "shape": [2]}'
    """
    if parameter.dtype is None:
        return ""
    about = {"type": "Tensor", "dtype": parameter.type_name, "shape": list(parameter.shape)}
    return f"PYTORCH:{json.dumps(about)}"


def type_of(name: str, metadata: bytes, nbytes: int) -> tuple[str, tuple[int, ...]]:
    """Return the name of the element type and the shape in an entry's metadata.

    An entry with other metadata, or without any, is a blob.

    Args:
        name: The name of the entry, for messages.
        metadata: The metadata.
        nbytes: The size of the contents in bytes.

    Raises:
        ArtifactError: The metadata is damaged, or does not fit the number of bytes.

    Example:
        >>> type_of("a", b'TENSORv0:{"type": "Tensor", "dtype": "float32", "shape": [2]}', 8)
        ('float32', (2,))
        >>> type_of("a", b"", 8)
        ('', (8,))
    """
    prefix = next((prefix for prefix in _METADATA_PREFIXES if metadata.startswith(prefix)), None)
    if prefix is None:
        return "", (nbytes,)
    about = require_json(f"metadata of {name!r}", metadata[len(prefix) :])
    if about.get("type") != "Tensor":
        return "", (nbytes,)
    type_name = about.get("dtype")
    require(isinstance(type_name, str), f"{name!r} has no element type in its metadata")
    shape = require_shape(name, about.get("shape"))
    parameter = Parameter(name, str(type_name), shape, nbytes, np.empty(0, np.uint8))
    if parameter.dtype is not None:
        expected = size_in_bytes(parameter.dtype, shape)
        require(
            expected == nbytes, f"{parameter} takes {expected} bytes, but has {nbytes} in the file"
        )
    return parameter.type_name, shape


class _Entry:
    """One entry of the table, checked against the segments that it refers to."""

    def __init__(self, table: NDArray[np.uint8], texts: NDArray[np.uint8]) -> None:
        require(len(table) >= _ENTRY.size, "its table of entries is cut off")
        self.nbytes, self.kind, _, *ranges, _ = _ENTRY.unpack_from(table.data)
        fits = _ENTRY.size <= self.nbytes <= len(table)
        require(fits, f"it has an entry of {self.nbytes} bytes")
        self.text_bytes = ranges[1] + ranges[3]
        name = _part(texts, ranges[0], ranges[1], "name of an entry")
        try:
            self.name = name.tobytes().decode()
        except UnicodeDecodeError as error:
            raise ArtifactError(f"the name of an entry is not UTF-8: {error}") from error
        self.metadata = _part(texts, ranges[2], ranges[3], f"metadata of {self.name!r}").tobytes()
        known = self.kind in (_SKIPPED_TYPE, _SPLAT_TYPE, _DATA_TYPE)
        require(known, f"{self.name!r} is of kind {self.kind}, which is not known")
        self._rest = table[_ENTRY.size : self.nbytes]
        self.start = 0

    def splat(self) -> Parameter:
        """Return the parameter that repeats a pattern."""
        require(len(self._rest) >= _SPLAT.size, f"the entry of {self.name!r} is cut off")
        nbytes, pattern, length = _SPLAT.unpack_from(self._rest.data)
        sound = length in (1, 2, 4, 8, 16) and nbytes % length == 0 and nbytes < 1 << 62
        require(sound, f"{self.name!r} repeats {length} bytes up to {nbytes}")
        type_name, shape = type_of(self.name, self.metadata, nbytes)
        data = np.frombuffer(pattern[:length], np.uint8)
        return Parameter(self.name, type_name, shape, nbytes, data, splat=True)

    def data(self, storage: NDArray[np.uint8]) -> Parameter:
        """Return the parameter whose contents are in the file."""
        require(len(self._rest) >= _RANGE.size, f"the entry of {self.name!r} is cut off")
        self.start, nbytes = _RANGE.unpack_from(self._rest.data)
        data = _part(storage, self.start, nbytes, f"contents of {self.name!r}")
        type_name, shape = type_of(self.name, self.metadata, nbytes)
        return Parameter(self.name, type_name, shape, nbytes, data)


def _part(memory: NDArray[np.uint8], start: int, length: int, what: str) -> NDArray[np.uint8]:
    if not length:
        return memory[:0]
    end = start + length
    require(end <= len(memory), f"the {what} end at byte {end} of {len(memory)}")
    return memory[start:end]
