"""ZIP directories: checks of untrusted files before `zipfile` reads them.

Nothing is unpacked by the names in a ZIP; names that could lead out of a folder are refused
nevertheless, so that other tools can unpack accepted files safely. `zipfile` takes many times the
size of a directory in memory, so the size is checked first.
"""

from __future__ import annotations

import itertools
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import ArtifactError

MAX_DIRECTORY_BYTES = 1 << 20
"""The largest directory that is read: about ten thousand members."""

_END = b"PK\x05\x06"
_END_BYTES = 22
_NAME = re.compile(r"[\w%.-]+(/[\w%.-]+)*")
_IN_ZIP64 = 0xFFFFFFFF


def check_end(path: Path) -> None:
    """Check that the directory of a ZIP is of a plausible size, without reading it.

    Raises:
        ArtifactError: It is larger than `MAX_DIRECTORY_BYTES`.
    """
    size = path.stat().st_size
    with open(path, "rb") as file:
        file.seek(max(0, size - _END_BYTES - 0xFFFF))
        tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or at + _END_BYTES > len(tail):
        return  # `zipfile` refuses the file
    stated = int.from_bytes(tail[at + 12 : at + 16], "little")
    if stated == _IN_ZIP64:  # the ZIP64 record has the size
        record = tail.rfind(b"PK\x06\x06", 0, at)
        stated = int.from_bytes(tail[record + 40 : record + 48], "little") if record >= 0 else 0
    if stated > MAX_DIRECTORY_BYTES:
        raise ArtifactError(f"{path} is damaged: its directory has {stated} bytes")


def check_members(members: Sequence[zipfile.ZipInfo]) -> None:
    """Check the members of a ZIP whose contents are not compressed.

    Raises:
        ArtifactError: Two members have one name or overlap, or a name leads out of the folder that
            the ZIP is unpacked to.
    """
    names = set()
    for member in members:
        if member.filename in names:
            raise ArtifactError(f"it holds {member.filename!r} twice")
        names.add(member.filename)
        parts = member.filename.split("/")
        if not _NAME.fullmatch(member.filename) or not all(part.strip(".") for part in parts):
            raise ArtifactError(f"it holds {member.filename!r}, which is not a valid member name")
    ordered = sorted(members, key=lambda member: member.header_offset)
    for first, second in itertools.pairwise(ordered):
        if first.header_offset + first.compress_size > second.header_offset:
            raise ArtifactError(f"its members {first.filename!r} and {second.filename!r} overlap")
