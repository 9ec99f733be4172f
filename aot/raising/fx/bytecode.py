"""Resources in MLIR bytecode, located without parsing the module and read without copies.

MLIR's Python bindings have no way to read a resource back. The layout of the sections is that of
"MLIR Bytecode Format": sections of an id and a length; the resource section (5) holds the blobs in
the order in which the resource offset section (6) lists their names and sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...spec.errors import ArtifactError

MAGIC = b"ML\xefR"
"""The first bytes of MLIR bytecode."""

_STRINGS, _RESOURCES, _RESOURCE_OFFSETS = 0, 5, 6
_ALIGNED = 0x80
_BLOB = 0


def read_blobs(data: bytes | memoryview) -> dict[str, memoryview]:
    """Return the resource blobs of a module by name, as views of `data`.

    Args:
        data: The whole bytecode.

    Raises:
        ArtifactError: It is no bytecode, or ends too early.
    """
    view = memoryview(data)
    if view[: len(MAGIC)] != MAGIC:
        raise ArtifactError("not MLIR bytecode: it begins with other bytes")
    try:
        sections = _sections(view)
        if _RESOURCES not in sections or _RESOURCE_OFFSETS not in sections:
            return {}
        return _blobs(view, sections, _strings(view, sections[_STRINGS]))
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise ArtifactError(f"damaged MLIR bytecode: {type(error).__name__}: {error}") from error


@dataclass
class _Cursor:
    """A place in the bytecode; offsets count from its first byte, as alignments do."""

    view: memoryview
    at: int
    end: int

    @property
    def done(self) -> bool:
        return self.at >= self.end

    def byte(self) -> int:
        self.at += 1
        return self.view[self.at - 1]

    def number(self) -> int:
        """Read an integer whose trailing zero bits say how many bytes it has."""
        first = self.view[self.at]
        if first == 0:
            self.at += 9
            return int.from_bytes(self.view[self.at - 8 : self.at], "little")
        count = (first & -first).bit_length()
        self.at += count
        return int.from_bytes(self.view[self.at - count : self.at], "little") >> count

    def align(self, alignment: int) -> None:
        self.at += -self.at % alignment


def _sections(view: memoryview) -> dict[int, _Cursor]:
    cursor = _Cursor(view, len(MAGIC), len(view))
    cursor.number()  # the version of the format
    while cursor.byte():  # the name of what wrote it
        pass
    sections: dict[int, _Cursor] = {}
    while not cursor.done:
        kind, length = cursor.byte(), cursor.number()
        if kind & _ALIGNED:
            cursor.align(cursor.number())
        sections[kind & ~_ALIGNED] = _Cursor(view, cursor.at, cursor.at + length)
        cursor.at += length
        if cursor.at > cursor.end:
            raise IndexError(f"it has {cursor.end} bytes, section {kind} ends at {cursor.at}")
    return sections


def _strings(view: memoryview, section: _Cursor) -> list[str]:
    """Return the texts of the string section; their lengths come last text first."""
    lengths = [section.number() for _ in range(section.number())]
    strings = []
    start = section.end - sum(lengths)
    for length in reversed(lengths):
        strings.append(bytes(view[start : start + length - 1]).decode())
        start += length
    return strings


def _blobs(
    view: memoryview, sections: dict[int, _Cursor], strings: list[str]
) -> dict[str, memoryview]:
    index, start = sections[_RESOURCE_OFFSETS], sections[_RESOURCES].at
    external, group = index.number(), 0
    blobs: dict[str, memoryview] = {}
    while not index.done:
        index.number()  # the dialect, or the name of an external group
        for _ in range(index.number()):
            name, size, kind = strings[index.number()], index.number(), index.byte()
            if kind == _BLOB and group >= external:
                blobs[name] = _blob(_Cursor(view, start, start + size))
            start += size
        group += 1
    return blobs


def _blob(entry: _Cursor) -> memoryview:
    alignment, length = entry.number(), entry.number()
    entry.align(alignment)
    return entry.view[entry.at : entry.at + length]
