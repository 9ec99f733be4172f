"""Checks of MLIR files, before MLIR's readers see them: those crash or hang on damaged ones.

Bytecode that we write has a checksum in the producer field of its head, which readers ignore.
Where there is none (text, or a file of another tool), the file is first read in a child process.
"""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path
from typing import BinaryIO

from ..compat.iree_tools import opt_tool
from ..spec.errors import ArtifactError

MAGIC = b"ML\xefR"

_LABEL = b" pelton-crc32:"
_FIELD_BYTES = 64  # the rest of the file stays aligned
_MOST_PRODUCER_BYTES = 256
_SECONDS = 60
_BYTES_PER_SECOND = 8 << 20


class ChecksumWriter:
    """Writes bytecode to a file that can be sought, with a checksum in its head.

    Args:
        file: The file, at its start.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._head = b""
        self._field_at = 0
        self._checksum = 0

    def write(self, data: bytes) -> int:
        """Write the next piece, as MLIR's writer gives it."""
        if self._field_at:
            self._put(data)
            return len(data)
        self._head += data
        end = self._head.find(b"\0", len(MAGIC) + 1)
        if end >= 0:
            self._file.write(self._head[:end])
            self._field_at = self._file.tell()
            self._file.write(bytes(_FIELD_BYTES).replace(b"\0", b" "))
            self._checksum = zlib.crc32(self._head[:end])
            self._put(self._head[end:])
        return len(data)

    def finish(self) -> None:
        """Write the checksum."""
        self._file.seek(self._field_at)
        self._file.write(_LABEL + b"%08x" % self._checksum)
        self._file.seek(0, 2)

    def _put(self, data: bytes) -> None:
        self._checksum = zlib.crc32(data, self._checksum)
        self._file.write(data)


def check(path: Path, data: bytes) -> None:
    """Check the bytes of a file, so that MLIR can read them in this process.

    Raises:
        ArtifactError: They are damaged, or of a kind that MLIR's reader does not survive.
    """
    if not _has_checksum(path, data):
        _read_in_child(path, len(data))


def _has_checksum(path: Path, data: bytes) -> bool:
    """Return whether the data has a checksum; a wrong one raises."""
    if not data.startswith(MAGIC):
        return False
    end = data.find(b"\0", len(MAGIC) + 1, _MOST_PRODUCER_BYTES)
    start = data.rfind(_LABEL, 0, max(end, 0))
    if start < 0 or end - start != _FIELD_BYTES:
        return False
    stated = data[start + len(_LABEL) :][:8]
    with memoryview(data) as view:
        found = zlib.crc32(view[end:], zlib.crc32(view[:start]))
    if stated != b"%08x" % found:
        raise ArtifactError(
            f"{path} is damaged: its checksum is {found:08x}, "
            f"expected {stated.decode(errors='replace')}"
        )
    return True


def _read_in_child(path: Path, size: int) -> None:
    elided = ("elementsattrs", "resource-strings")
    flags = [f"--mlir-elide-{what}-if-larger=0" for what in elided]
    try:
        done = subprocess.run(
            [str(opt_tool()), str(path), "-o", "/dev/null", *flags],
            capture_output=True,
            timeout=_SECONDS + size / _BYTES_PER_SECOND,
        )
    except subprocess.TimeoutExpired:
        raise ArtifactError(f"{path} is damaged: MLIR's reader comes to no end with it") from None
    if done.returncode < 0:  # else the reader of this process reports the error
        raise ArtifactError(
            f"{path} is damaged: MLIR's reader crashes on it (signal {-done.returncode})"
        )
