"""Packages (`.trtm`): engines, reference graphs and state in one ZIP that can be mapped.

Members are stored uncompressed at multiples of 64 bytes, `manifest.json` first. An engine is the
plain plan that TensorRT writes, so that `pelton unpack`, or any ZIP tool, extracts files that other
tools read. A package is a program: load it only from a source that you trust.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..archive import safetensors
from ..archive.parameter_set import ParameterSet
from ..checked import require, require_unique
from ..errors import ArtifactError
from ..files import FileKind, StrPath, atomic_write, sniff
from . import stored_zip
from .entry_points import PARAMETERS, STATE, Member, Port
from .manifest import Manifest
from .zip_directory import check_end

MANIFEST = "manifest.json"
"""Name of the first member."""

Contents = bytes | memoryview | Path
"""The contents of a member: bytes, or the path of a file."""

CHUNK_BYTES = 16 << 20
"""The most bytes of a member that are read or hashed at once."""

_MAX_MANIFEST_BYTES = 256 << 20
_MEMBER_NAME = re.compile(r"[\w%.-]+(/[\w%.-]+)?", re.ASCII)


def write_trtm(path: StrPath, manifest: Manifest, members: Mapping[str, Contents]) -> None:
    """Write a package atomically.

    Contents that are files are streamed in chunks. They are read twice, for the checksum and for
    the copy, and must not change in between.

    Args:
        path: The package.
        manifest: Its description; the `members` are computed here.
        members: The contents of each member, by name; see `manifest.member_name`.

    Raises:
        ArtifactError: It cannot be written, or the manifest and the members are inconsistent.

    Example:
        >>> write_trtm("m.trtm", Manifest("rtx", "1.7.1"), {})
        Traceback (most recent call last):
        ...
        pelton.runtime.errors.ArtifactError: cannot write m.trtm: the package has no entry point
    """
    try:
        for name in members:
            _check_name(name)
        described = {name: _describe(contents) for name, contents in members.items()}
        stored = {name: member for name, (member, _) in described.items()}
        complete = replace(manifest, members=stored)
        complete.check()
        text = complete.to_json().encode()
        with atomic_write(path) as file:
            entries = [(MANIFEST, iter([memoryview(text)]), len(text))]
            for name, (member, crc) in described.items():
                entries.append((name, _copied(name, members[name], crc), member.nbytes))
            stored_zip.write(file, entries)
    except ArtifactError as error:
        start = "" if str(error).startswith("cannot write") else f"cannot write {path}: "
        raise ArtifactError(f"{start}{error}") from error
    except OSError as error:
        raise ArtifactError(f"cannot write {path}: {error}") from error


def _chunks(contents: Contents) -> Iterator[memoryview]:
    if isinstance(contents, Path):
        with open(contents, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield memoryview(chunk)
    else:
        view = memoryview(contents).cast("B")
        for start in range(0, len(view), CHUNK_BYTES):
            yield view[start : start + CHUNK_BYTES]


def _describe(contents: Contents) -> tuple[Member, int]:
    """Return the manifest's member for contents, and their CRC-32."""
    digest, nbytes, crc = hashlib.sha256(), 0, 0
    for chunk in _chunks(contents):
        digest.update(chunk)
        crc = zlib.crc32(chunk, crc)
        nbytes += len(chunk)
    return Member(nbytes, digest.hexdigest()), crc


def _copied(name: str, contents: Contents, expected: int) -> Iterator[memoryview]:
    """Yield the contents.

    Args:
        name: The member, for messages.
        contents: The contents.
        expected: Their CRC-32 when they were described.

    Raises:
        ArtifactError: They changed since.
    """
    crc = 0
    for chunk in _chunks(contents):
        crc = zlib.crc32(chunk, crc)
        yield chunk
    require(crc == expected, f"{name} changed while it was read")


def _check_name(name: str) -> None:
    """Refuse names of members that lead out of a folder, or that tools cannot unpack."""
    sound = _MEMBER_NAME.fullmatch(name) and not any(
        part in (".", "..") for part in name.split("/")
    )
    require(bool(sound), f"{name!r} is not a valid member name")


class Package:
    """An opened `.trtm`; made by `open_trtm`. The file stays mapped while it or a view lives.

    Attributes:
        path: The file.
        manifest: Its description.
    """

    def __init__(
        self, path: Path, memory: memoryview, manifest: Manifest, spans: Mapping[str, range]
    ) -> None:
        self.path = path
        self.manifest = manifest
        self._memory = memory
        self._spans = spans
        self._checked: set[str] = set()

    def read(self, name: str) -> memoryview:
        """Return the mapped contents of a member, whose checksum is verified at the first call.

        Raises:
            ArtifactError: The member is missing, or its checksum is not that of the manifest.
        """
        if name not in self._spans:
            raise ArtifactError(f"{self.path} has no member {name!r}")
        span = self._spans[name]
        contents = self._memory[span.start : span.stop]
        if name not in self._checked:
            found = hashlib.sha256(contents).hexdigest()
            expected = self.manifest.members[name].sha256
            if found != expected:
                raise ArtifactError(
                    f"{self.path} is damaged: the SHA-256 of {name} is {found}, expected {expected}"
                )
            self._checked.add(name)
        return contents

    def archive(self, name: str, ports: Mapping[str, Port]) -> ParameterSet:
        """Return the mapped tensors in a safetensors member, one for each port.

        Raises:
            ArtifactError: The member is damaged, or its tensors are not those of the ports.
        """
        if not ports:
            return ParameterSet([], str(self.path))
        try:
            memory = np.frombuffer(self.read(name), np.uint8)
            found = ParameterSet(safetensors.read(memory), f"{name} of {self.path}")
            missing = sorted(ports.keys() - found.keys())
            require(not missing, f"{name} lacks {', '.join(missing)}")
            for origin, port in ports.items():
                tensor = found[origin]
                fits = (tensor.dtype, tensor.shape) == (port.dtype, port.spec.static_shape)
                require(fits, f"{name} has {tensor}, expected {port.spec}")
            return found
        except ArtifactError as error:
            if str(self.path) in str(error):
                raise
            raise ArtifactError(f"{self.path} is damaged: {error}") from error

    @property
    def initial_state(self) -> ParameterSet:
        """The initial value of each piece of state, by its name."""
        return self.archive(STATE, self.manifest.state)

    @property
    def parameters(self) -> ParameterSet:
        """The weights that are inputs of engines, by origin."""
        return self.archive(PARAMETERS, self.manifest.parameters)

    def copy_to(self, target: BinaryIO) -> None:
        """Write the bytes of the file that was opened, even if it was unlinked since."""
        for chunk in _chunks(self._memory):
            target.write(chunk)


def open_trtm(path: StrPath) -> Package:
    """Open a package: map it, and check everything but the contents of its members.

    Raises:
        ArtifactError: There is no such file, or it is not a valid package of a known version.

    Example:
        >>> open_trtm("missing.trtm")
        Traceback (most recent call last):
        ...
        pelton.runtime.errors.ArtifactError: no such file: missing.trtm
    """
    path = Path(path)
    kind = sniff(path)
    if kind is not FileKind.TRTM:
        raise ArtifactError(f"{path} is not a TensorRT package: its content is {kind.value}")
    try:
        check_end(path)
        with open(path, "rb") as file:
            memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            spans = _spans(file, memory)
        text = memory[spans[MANIFEST].start : spans[MANIFEST].stop]
        manifest = Manifest.from_json(bytes(text))
        _check_members(spans, manifest)
        return Package(path, memory, manifest, spans)
    except ArtifactError as error:
        raise ArtifactError(f"{path} is not a valid TensorRT package: {error}") from error
    except stored_zip.ZIP_ERRORS as error:
        raise ArtifactError(f"{path} is truncated or damaged: {error}") from error


def _spans(file: BinaryIO, memory: memoryview) -> dict[str, range]:
    """Return the range of bytes of each member."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    require_unique(member.filename for member in members)
    spans: dict[str, range] = {}
    for member in members:
        _check_name(member.filename)
        start, stop = stored_zip.span_of(memory, member)
        spans[member.filename] = range(start, stop)
        if member.filename == MANIFEST:  # has the checksums of the others
            _check_manifest(memory[start:stop], member.CRC)
    require(MANIFEST in spans, f"there is no {MANIFEST}")
    ordered = sorted((span.start, span.stop, name) for name, span in spans.items())
    for (_, end, name), (start, _, following) in itertools.pairwise(ordered):
        require(end <= start, f"{name} and {following} overlap")
    return spans


def _check_manifest(text: memoryview, expected: int) -> None:
    require(len(text) <= _MAX_MANIFEST_BYTES, f"{MANIFEST} is implausibly large")
    require(zlib.crc32(text) == expected, f"the checksum of {MANIFEST} is not that of its content")


def _check_members(spans: Mapping[str, range], manifest: Manifest) -> None:
    found, listed = spans.keys() - {MANIFEST}, manifest.members.keys()
    missing, unknown = sorted(listed - found), sorted(found - listed)
    require(not missing, f"it lacks {', '.join(missing)}")
    require(not unknown, f"its manifest does not list {', '.join(unknown)}")
    for name, member in manifest.members.items():
        size = len(spans[name])
        require(
            size == member.nbytes, f"{name} has {size} bytes, the manifest says {member.nbytes}"
        )
