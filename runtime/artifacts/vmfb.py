"""IREE modules (`.vmfb`): VM bytecode in a ZIP, with a member of metadata.

IREE writes a ZIP whose only member is the VM bytecode. Pelton appends `pelton.json`: versions, the
target with its CPU features, and the table of external parameters. IREE's own tools ignore the
member.
"""

from __future__ import annotations

import json
import mmap
import platform
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..call.dtypes import DType
from ..call.signature import dtype_from_json
from ..checked import Decoder, require, require_json
from ..device.cpu import missing_features
from ..errors import ArtifactError, DeviceError
from ..files import StrPath
from .stored_zip import ZIP_ERRORS, span_of
from .zip_directory import check_end, check_members

MEMBER = "pelton.json"
"""Name of the member that Pelton adds."""

FORMAT = 1
"""Version of that member. 1: the first."""

_MAX_INFO_BYTES = 16 << 20
_MAX_DEVICES = 256

ParameterTable = dict[str, dict[str, tuple[DType, tuple[int, ...]]]]
"""Element type and shape of each external parameter, by scope and name."""


@dataclass(frozen=True)
class VmfbInfo:
    """The metadata of a `.vmfb`.

    Attributes:
        target: `backend`; for CPUs `arch`, `cpu` and `features`; `devices` where the module has
            device affinities.
        versions: Versions of the Python packages that made it.
        parameters: The external parameters that it needs.
        options: The options that it was compiled with.
    """

    target: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    parameters: ParameterTable = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def devices(self) -> int:
        """How many devices it runs on."""
        return int(self.target.get("devices", 1))

    def to_json(self) -> str:
        """Return the text of the member."""
        parameters = {
            scope: {name: [dtype.name, list(shape)] for name, (dtype, shape) in table.items()}
            for scope, table in self.parameters.items()
        }
        return json.dumps(
            {
                "format": FORMAT,
                "target": self.target,
                "versions": self.versions,
                "parameters": parameters,
                "options": self.options,
            },
            indent=1,
            sort_keys=True,
        )

    @staticmethod
    def from_json(text: bytes) -> VmfbInfo:
        """Read the member.

        Raises:
            ArtifactError: It is not what `to_json` writes, or of another format version.
        """
        try:
            data = require_json("text", text)
            require("format" in data, "it states no format")
            found = data.pop("format")
            if found == FORMAT:
                info = _DECODER.decode(VmfbInfo, data, "info")
                _check_target(info.target)
                return info
        except ArtifactError as error:
            raise ArtifactError(f"{MEMBER} is damaged: {error}") from error
        raise ArtifactError(
            f"format {found!r} of {MEMBER}, this version of Pelton reads format {FORMAT}; "
            "compile the module again"
        )


_DECODER = Decoder(hooks={DType: dtype_from_json})


def _check_target(target: Mapping[str, Any]) -> None:
    """Check the parts of a target that loading relies on.

    Raises:
        ArtifactError: Names what is damaged.
    """
    features, devices = target.get("features", []), target.get("devices", 1)
    sound = isinstance(features, list) and all(isinstance(name, str) for name in features)
    require(sound, f"the CPU features are {features!r:.80}")
    sound = type(devices) is int and 1 <= devices <= _MAX_DEVICES
    require(sound, f"the number of devices is {devices!r:.80}")


def append_info(path: StrPath, info: VmfbInfo) -> None:
    """Append `info` to a `.vmfb` that IREE has just written."""
    member = zipfile.ZipInfo(MEMBER)  # a fixed date: the same input gives the same bytes
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(member, info.to_json())


def read_info(path: StrPath) -> VmfbInfo:
    """Check the structure and the checksums of a `.vmfb`, and return its metadata.

    A module of plain `iree-compile` has no member of Pelton, and an empty `VmfbInfo`.

    Raises:
        ArtifactError: Truncated, damaged, or of another format version.
    """
    path = Path(path)
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise ArtifactError(
                f"{path} is bare bytecode without a checksum, so that damage cannot be detected; "
                " compile it as the ZIP that iree-compile writes by default"
            )
    check_end(path)
    try:
        with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
            check_members(archive.infolist())
            members = {member.filename: member for member in archive.infolist()}
            if "module.fb" not in members:
                raise ArtifactError(f"{path} is not an IREE module: it holds {sorted(members)}")
            _check_checksums(file, list(members.values()), path)
            if MEMBER not in members:
                return VmfbInfo()
            if members[MEMBER].file_size > _MAX_INFO_BYTES:
                raise ArtifactError(f"{path} is damaged: {MEMBER} is implausibly large")
            return VmfbInfo.from_json(archive.read(MEMBER))
    except ArtifactError as error:
        if str(path) in str(error):
            raise
        raise ArtifactError(f"{path}: {error}") from error
    except ZIP_ERRORS as error:
        raise ArtifactError(f"{path} is truncated or damaged: {error}") from error


def _check_checksums(file: Any, members: list[zipfile.ZipInfo], path: Path) -> None:
    """Verify the checksum of each member, in place."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
        for member in members:
            try:
                start, end = span_of(view, member)
            except ArtifactError as error:
                raise ArtifactError(f"{path} is damaged: {error}") from None
            with view[start:end] as data:
                found = zlib.crc32(data)
            if found != member.CRC:
                raise ArtifactError(
                    f"{path} is damaged: the checksum of {member.filename} is {found:#010x}, "
                    f"expected {member.CRC:#010x}"
                )


def check_cpu(info: VmfbInfo, path: str) -> None:
    """Refuse a module that was compiled for another CPU.

    Raises:
        DeviceError: It needs another architecture, or features that this CPU lacks.
    """
    arch = info.target.get("arch")
    if arch is None:
        return
    if arch != platform.machine():
        raise DeviceError(f"{path} was compiled for {arch}, this machine is {platform.machine()}")
    missing = missing_features(info.target.get("features", ()))
    if missing:
        raise DeviceError(
            f"{path} was compiled for CPU {info.target.get('cpu')!r} with features that this "
            f"one lacks: {', '.join(missing)}; compile with target_cpu='generic' or on this machine"
        )


def describe_target(target: Mapping[str, Any]) -> str:
    """Return a target as text.

    Example:
        >>> describe_target({"backend": "llvm-cpu", "arch": "x86_64", "cpu": "znver4"})
        'llvm-cpu (x86_64, znver4)'
    """
    details = [str(target[key]) for key in ("version", "arch", "cpu", "gpu") if target.get(key)]
    if "devices" in target:
        details.append(f"for {target['devices']} devices")
    backend = str(target.get("backend", "unknown"))
    return f"{backend} ({', '.join(details)})" if details else backend
