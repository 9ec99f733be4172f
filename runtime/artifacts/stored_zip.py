"""Stored ZIP files: uncompressed members, which can be mapped and used in place."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from ..checked import align
from ..errors import ArtifactError

ALIGNMENT = 64
"""Alignment in bytes of the contents of a member, so that they can be used mapped."""

ZIP_ERRORS = (zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError, struct.error)
"""The exceptions of `zipfile` for damaged files, and for flags of encryption or other versions."""

_MAGIC = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<26xHH")
_ZIP64_EXTRA_BYTES = 20
_ZIP64_FROM = 1 << 31
_PADDING_ID = 0xD935
"""The extra field that Android's zipalign uses for the same purpose; readers skip it."""


def span_of(memory: memoryview, member: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the start and end of the contents of a member in the bytes of its ZIP.

    Args:
        memory: The bytes of the file.
        member: An entry of its directory.

    Raises:
        ArtifactError: The member is compressed or encrypted, or not within the file.
    """
    name, offset = member.filename, member.header_offset
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        raise ArtifactError(f"{name} is not stored as it is")
    header = bytes(memory[offset : offset + _LOCAL_HEADER.size]) if offset >= 0 else b""
    if len(header) < _LOCAL_HEADER.size or not header.startswith(_MAGIC):
        raise ArtifactError(f"the directory has no place for {name}")
    name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
    start = offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
    end = start + member.file_size
    if end > len(memory):
        raise ArtifactError(f"{name} ends behind the end of the file")
    return start, end


def write(file: BinaryIO, members: Iterable[tuple[str, Iterator[memoryview], int]]) -> None:
    """Write a ZIP of uncompressed members, each at a multiple of `ALIGNMENT` bytes.

    The output is reproducible: dates are fixed. Contents are streamed.

    Args:
        file: The file to write, from its start.
        members: The name, the contents in pieces, and their number of bytes, of each member.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> write(file, [("a.txt", iter([memoryview(b"bytes")]), 5)])
        >>> file.getvalue().index(b"bytes")
        64
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, pieces, nbytes in members:
            member, is_large = zipfile.ZipInfo(name), nbytes >= _ZIP64_FROM
            start = file.tell() + _LOCAL_HEADER.size + len(name.encode())
            start += _ZIP64_EXTRA_BYTES if is_large else 0
            padding = align(start + 4, ALIGNMENT) - start - 4
            member.extra = struct.pack("<HH", _PADDING_ID, padding) + bytes(padding)
            with archive.open(member, "w", force_zip64=is_large) as target:
                for piece in pieces:
                    target.write(piece)
