"""Files on disk: atomic writes, and file kinds by their first bytes."""

from __future__ import annotations

import contextlib
import enum
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import ArtifactError

StrPath = str | os.PathLike[str]
"""The path of a file, as text or as a path object."""


@contextlib.contextmanager
def atomic_path(path: StrPath) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it replaces `path`, else it is removed.

    The data is flushed to the disk before the rename, so that a crash leaves either the old file
    or the complete new one. For writers that need a path; `atomic_write` yields an open file.

    Raises:
        ArtifactError: The folder does not exist, or `path` is a folder.

    Example:
        >>> import tempfile, pathlib
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> with atomic_path(folder / "a.txt") as temporary:
        ...     _ = temporary.write_text("text")
        >>> [p.name for p in folder.iterdir()]
        ['a.txt']
    """
    target = Path(path)
    if target.is_dir():
        raise ArtifactError(f"cannot write {target}: it is a folder; give the name of a file")
    if not target.parent.is_dir():
        raise ArtifactError(f"cannot write {target}: folder {target.parent} does not exist")
    temporary = target.parent / f".{secrets.token_hex(8)}.part"
    try:
        # Not by tempfile: here the file gets the permissions that the user's umask asks for.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
    except OSError as error:
        raise ArtifactError(f"cannot write {target}: {error.strerror}") from error
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_write(path: StrPath) -> Iterator[BinaryIO]:
    """Open `path` for writing bytes; the file gets its name only when all is written.

    Raises:
        ArtifactError: The folder does not exist, or `path` is a folder.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.bin"
        >>> with atomic_write(path) as file:
        ...     _ = file.write(b"bytes")
        >>> path.read_bytes()
        b'bytes'
    """
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        yield file


@contextlib.contextmanager
def atomic_folder(path: StrPath) -> Iterator[Path]:
    """Yield a temporary folder beside `path`, which gets that name on success, else is removed.

    Raises:
        ArtifactError: There is something of that name already, other than an empty folder, or the
            folder to put it in does not exist.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "all"
        >>> with atomic_folder(path) as temporary:
        ...     _ = (temporary / "a.txt").write_text("text")
        >>> [p.name for p in path.iterdir()]
        ['a.txt']
    """
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ArtifactError(f"cannot write {target}: it exists already; give the name of a new one")
    if not target.parent.is_dir():
        raise ArtifactError(f"cannot write {target}: folder {target.parent} does not exist")
    temporary = target.parent / f".{secrets.token_hex(8)}.part"
    try:
        temporary.mkdir()
        yield temporary
        if target.exists():
            target.rmdir()
        os.rename(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise ArtifactError(f"cannot write {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class FileKind(enum.Enum):
    """The format of a file, by its first bytes (by its name only for formats without a magic)."""

    MLIR_TEXT = "MLIR text"
    MLIR_BYTECODE = "MLIR bytecode"
    VMFB = "IREE module (.vmfb)"
    TRTM = "TensorRT package (.trtm)"
    IRPA = "IREE parameter archive (.irpa)"
    SAFETENSORS = "safetensors archive"
    GGUF = "GGUF archive"
    UNKNOWN = "unknown"


def sniff(path: StrPath) -> FileKind:
    """Return the kind of a file.

    Raises:
        ArtifactError: There is no such file, it is a folder, it is empty, or it cannot be read.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "m.mlir"
        >>> _ = path.write_text("module {}")
        >>> sniff(path)
        <FileKind.MLIR_TEXT: 'MLIR text'>
    """
    path = Path(path)
    if not path.exists():
        raise ArtifactError(f"no such file: {path}")
    if path.is_dir():
        raise ArtifactError(f"{path} is a folder; give the path of a file")
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}") from error
    if not head:
        raise ArtifactError(f"{path} is empty")
    return _kind_of(head, path)


def _kind_of(head: bytes, path: Path) -> FileKind:
    if head.startswith(b"ML\xefR"):
        return FileKind.MLIR_BYTECODE
    if head.startswith(b"IRPA"):
        return FileKind.IRPA
    if head.startswith(b"GGUF"):
        return FileKind.GGUF
    if head.startswith(b"PK\x03\x04"):
        # A .vmfb is a ZIP whose first member is the VM module; a .trtm starts with its manifest.
        return FileKind.TRTM if b"manifest.json" in head[:64] else FileKind.VMFB
    if len(head) >= 8 and head[4:8] == b"IREE":
        return FileKind.VMFB
    if len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32:
        return FileKind.SAFETENSORS
    if path.suffix == ".mlir" or head.lstrip().startswith(
        (b"module", b"#", b"//", b"builtin.module")
    ):
        return FileKind.MLIR_TEXT
    return FileKind.UNKNOWN
