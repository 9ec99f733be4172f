"""The compile cache: artifacts on disk by what they were made from.

An entry is two files: the artifact as it is, and beside it what is known of it as JSON, written
last, whose modification time is the time of the last use. Files appear whole under their names.
Any number of processes and threads may use a folder: who wants an entry that another one is making
waits for it.

An artifact and the file that the user asked for are one file with two names (a hard link) where
the file system allows it, so that a hit costs no copy. At most one file of the user's is linked
to an entry: writing into it changes no other output, only the entry, which then fails its checksum
and is made again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import filelock

from pelton.runtime.files import StrPath, atomic_path, atomic_write

from ..ir.digest import THREADS
from ..spec.errors import ArtifactError

FORMAT = 1
"""Version of the entries; one of another version is no entry. 1: the first."""

_ARTIFACT = ".artifact"
_FACTS = ".json"
_LOCK = ".lock"
_CHUNK_BYTES = 4 << 20
_STALE_SECONDS = 24 * 3600
"""Age from which what a process that died has left is removed."""


@dataclass(frozen=True)
class Made:
    """What is known of an artifact besides its bytes; kept with them.

    Attributes:
        target: What it was compiled for.
        entry_points: The functions that it offers.
        notes: What the target said of it.
    """

    target: str
    entry_points: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CacheEntry:
    """An artifact in the cache.

    Attributes:
        key: What it was made from, as hexadecimal digits.
        path: The artifact.
        made: What is known of it.
        size_bytes: Its size.
        modified_ns: When its content was last written, in nanoseconds since 1970.
        checksums: The CRC-32 of each chunk of it.
        last_used: When it was made or last used, in seconds since 1970.
    """

    key: str
    path: Path
    made: Made
    size_bytes: int
    modified_ns: int
    checksums: tuple[int, ...] = field(repr=False)
    last_used: float = field(default_factory=time.time)

    def is_sound(self) -> bool:
        """Return whether the artifact is what was stored.

        Its checksums are computed only if it was written to since; a file is changed under our
        hands by programs, not by disks, and artifacts have checksums of their own for the latter.
        """
        try:
            with open(self.path, "rb") as file:
                status = os.fstat(file.fileno())
                if status.st_size != self.size_bytes:
                    return False
                if status.st_mtime_ns == self.modified_ns:
                    return True
                return _checksums(file.fileno(), self.size_bytes) == self.checksums
        except OSError:
            return False


class CompileCache:
    """A folder of compiled artifacts.

    Args:
        folder: The folder; made when something is stored. `~` is the user's home.
        size_limit_bytes: When it is larger, entries that were not used for the longest time go.

    Example:
        >>> import tempfile
        >>> cache = CompileCache(tempfile.mkdtemp(), 1 << 20)
        >>> def compiler(path):
        ...     print("compiling")
        ...     path.write_bytes(b"code")
        ...     return Made("cpu")
        >>> out = Path(tempfile.mkdtemp(), "a.vmfb")
        >>> cache.build("0" * 64, out, compiler).target, cache.build("0" * 64, out, compiler).target
        compiling
        ('cpu', 'cpu')
    """

    def __init__(self, folder: StrPath, size_limit_bytes: int) -> None:
        self.folder = Path(folder).expanduser()
        self.size_limit_bytes = size_limit_bytes

    def build(
        self,
        key: str,
        path: Path,
        make: Callable[[Path], Made],
        *,
        replaces: Path | None = None,
        private: bool = False,
    ) -> Made:
        """Write the artifact of `key` to `path`: from the cache, or made now and stored.

        A damaged entry is made again. That an artifact cannot be stored is a warning only.

        Args:
            key: What it is made from; see `fingerprint.compile_key`.
            path: Where to write it; a file there is replaced.
            make: Writes the artifact to the path that it is given.
            replaces: Where the caller will move the file to, if it is not `path`.
            private: Whether the file is for this process alone and never written to.

        Returns:
            What `make` said of the artifact, now or when it was stored.

        Raises:
            ArtifactError: The folder cannot be made or written to.
        """
        self._make_folder()
        with filelock.FileLock(self._file(key, _LOCK)):
            entry = self._entry(key)
            if entry is not None and entry.is_sound():
                with contextlib.suppress(FileNotFoundError):  # removed at this moment
                    self._deliver(entry, path, private or _has_only(entry.path, replaces or path))
                    return entry.made
            made = make(path)
            try:
                self._store(key, path, made)
            except OSError as error:
                warnings.warn(f"not kept in the cache {self.folder}: {error}", stacklevel=2)
        return made

    @contextlib.contextmanager
    def private_file(self) -> Iterator[Path]:
        """Yield a path within the folder, for `build(private=True)`; it is removed in the end."""
        self._make_folder()
        handle, name = tempfile.mkstemp(prefix=f".private{_ARTIFACT}.", dir=self.folder)
        os.close(handle)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def entries(self) -> list[CacheEntry]:
        """Return the entries, the last used first."""
        found = (self._entry(path.stem) for path in self.folder.glob(f"*{_FACTS}"))
        return sorted((e for e in found if e), key=lambda entry: -entry.last_used)

    def clear(self) -> list[CacheEntry]:
        """Remove everything; return the entries that there were."""
        removed = self.entries()
        for path in self._own_files():
            path.unlink(missing_ok=True)
        return removed

    def _file(self, key: str, suffix: str) -> Path:
        return self.folder / f"{key}{suffix}"

    def _own_files(self) -> Iterator[Path]:
        for suffix in (_FACTS, _ARTIFACT, _LOCK):
            yield from self.folder.glob(f"*{suffix}")
            yield from self.folder.glob(f".*{suffix}.*")  # temporary files

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArtifactError(f"cannot make the cache folder {self.folder}: {error}") from error
        if not os.access(self.folder, os.W_OK):
            raise ArtifactError(f"the cache folder {self.folder} cannot be written to")

    def _entry(self, key: str) -> CacheEntry | None:
        """Return the entry of a key; None where there is none that can be read."""
        path = self._file(key, _FACTS)
        try:
            facts = json.loads(path.read_bytes())
            if facts["format"] != FORMAT:
                return None
            made = facts["made"]
            return CacheEntry(
                key=key,
                path=self._file(key, _ARTIFACT),
                made=Made(made["target"], tuple(made["entry_points"]), tuple(made["notes"])),
                size_bytes=int(facts["size_bytes"]),
                modified_ns=int(facts["modified_ns"]),
                checksums=tuple(facts["checksums"]),
                last_used=path.stat().st_mtime,
            )
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _deliver(self, entry: CacheEntry, path: Path, may_link: bool) -> None:
        if may_link and _link(entry.path, path):
            os.utime(path)  # an output that is as old as its first compile would mislead `make`
            self._write_facts(replace(entry, modified_ns=path.stat().st_mtime_ns))
        else:
            _copy(entry.path, path)
            os.utime(self._file(entry.key, _FACTS))

    def _store(self, key: str, artifact: Path, made: Made) -> None:
        size = artifact.stat().st_size
        if size > self.size_limit_bytes:
            limit = f"{self.size_limit_bytes} of aot.config.cache_size_bytes"
            warnings.warn(f"not kept in the cache: {size} bytes, more than {limit}", stacklevel=3)
            return
        stored = self._file(key, _ARTIFACT)
        with atomic_path(stored) as temporary:
            if not _link(artifact, temporary):
                _copy(artifact, temporary)
        with open(stored, "rb") as file:
            checksums = _checksums(file.fileno(), size)
            modified_ns = os.fstat(file.fileno()).st_mtime_ns
        self._write_facts(CacheEntry(key, stored, made, size, modified_ns, checksums))
        self._evict()

    def _write_facts(self, entry: CacheEntry) -> None:
        facts = {
            "format": FORMAT,
            "made": asdict(entry.made),
            "size_bytes": entry.size_bytes,
            "modified_ns": entry.modified_ns,
            "checksums": entry.checksums,
        }
        with atomic_write(self._file(entry.key, _FACTS)) as file:
            file.write(json.dumps(facts).encode())

    def _evict(self) -> None:
        """Remove what is over the limit, and what belongs to no entry any more."""
        used = 0
        kept = set()
        for entry in self.entries():
            used += entry.size_bytes
            if used > self.size_limit_bytes:
                for suffix in (_FACTS, _ARTIFACT, _LOCK):  # what makes it an entry goes first
                    self._file(entry.key, suffix).unlink(missing_ok=True)
            else:
                kept.add(entry.key)
        for path in self._own_files():
            with contextlib.suppress(FileNotFoundError):
                is_old = time.time() - path.stat().st_mtime > _STALE_SECONDS
                if path.stem not in kept and is_old:
                    path.unlink()


def _has_only(artifact: Path, target: Path) -> bool:
    """Return whether no file other than `target` is linked to an artifact."""
    status = artifact.stat()
    try:
        is_linked = os.path.samestat(status, target.stat())
    except FileNotFoundError:
        is_linked = False
    return status.st_nlink == 1 + is_linked


def _link(source: Path, target: Path) -> bool:
    """Give a file a second name, in place of what has it; tell whether the system can."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def _copy(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)  # it may be a second name of an entry
    shutil.copyfile(source, target)


def _checksums(file: int, size_bytes: int) -> tuple[int, ...]:
    """Return the CRC-32 of each chunk of an open file, computed in threads."""

    def checksum(start: int) -> int:
        return zlib.crc32(os.pread(file, min(_CHUNK_BYTES, size_bytes - start), start))

    with ThreadPoolExecutor(THREADS) as pool:
        return tuple(pool.map(checksum, range(0, size_bytes, _CHUNK_BYTES)))
