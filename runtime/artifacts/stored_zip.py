"""ZIP files whose members are stored as they are, so that they can be mapped and used in place."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from ..checked import align
from ..errors import ArtifactError

ALIGNMENT = 64
"""Where the contents of a member start: at multiples of this, so that they can be used mapped."""

ZIP_ERRORS = (zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError, struct.error)
"""What `zipfile` raises for damaged files, also where a flag says encrypted or another version."""

_MAGIC = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<26xHH")
_ZIP64_EXTRA_BYTES = 20
_ZIP64_FROM = 1 << 31
_PADDING_ID = 0xD935
"""The extra field that Android's zipalign uses for the same purpose; readers skip it."""


def span_of(memory: memoryview, member: zipfile.ZipInfo) -> tuple[int, int]:
    """Return where the contents of a member start and end in the bytes of its ZIP.

    Args:
        memory: The whole file.
        member: An entry of its directory.

    Raises:
        ArtifactError: The member is compressed or encrypted, or does not lie within the file.
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
    """Write a ZIP of members stored as they are, each at a multiple of `ALIGNMENT` bytes.

    The same members give the same bytes: dates are fixed. Contents are streamed.

    Args:
        file: Where to write, from its start on.
        members: The name, the contents in pieces, and their number of bytes, of each member.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> write(file, [("a.txt", iter([memoryview(b"whole")]), 5)])
        >>> file.getvalue().index(b"whole")
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
