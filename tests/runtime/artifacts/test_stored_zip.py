"""Stored ZIP files: alignment, reproducible bytes, and spans of members."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterable

import pytest

from pelton.runtime.artifacts import stored_zip
from pelton.runtime.artifacts.stored_zip import ALIGNMENT, span_of, write
from pelton.runtime.errors import ArtifactError

MEMBERS = {"a.txt": b"first", "folder/b.bin": bytes(range(256)), "empty": b"", "c": b"x" * 63}


def written(members: Iterable[tuple[str, bytes]]) -> bytes:
    file = io.BytesIO()
    pieces = ((name, iter([memoryview(data)]), len(data)) for name, data in members)
    write(file, pieces)
    return file.getvalue()


def entries(data: bytes) -> list[zipfile.ZipInfo]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.infolist()


def test_contents_are_aligned_and_where_their_span_is() -> None:
    data = written(MEMBERS.items())
    for member in entries(data):
        start, end = span_of(memoryview(data), member)
        assert start % ALIGNMENT == 0
        assert data[start:end] == MEMBERS[member.filename]


def test_other_tools_read_the_file() -> None:
    with zipfile.ZipFile(io.BytesIO(written(MEMBERS.items()))) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == MEMBERS


def test_same_members_are_the_same_bytes() -> None:
    assert written(MEMBERS.items()) == written(MEMBERS.items())


def test_pieces_are_joined() -> None:
    file = io.BytesIO()
    write(file, [("a", iter([memoryview(b"one "), memoryview(b"two")]), 7)])
    assert zipfile.ZipFile(file).read("a") == b"one two"


def test_large_members_have_sizes_of_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_zip, "_ZIP64_FROM", 100)
    data = written(MEMBERS.items())
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    spans = [span_of(memoryview(data), member) for member in entries(data)]
    assert [start % ALIGNMENT for start, _ in spans] == [0] * len(MEMBERS)
    assert data[slice(*spans[1])] == MEMBERS["folder/b.bin"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("compress_type", zipfile.ZIP_DEFLATED, "a.txt is not stored as it is"),
        ("flag_bits", 1, "a.txt is not stored as it is"),
        ("header_offset", -5, "the directory has no place for a.txt"),
        ("header_offset", 1 << 40, "the directory has no place for a.txt"),
        ("header_offset", 1, "the directory has no place for a.txt"),
        ("file_size", 1 << 20, "a.txt ends behind the end of the file"),
    ],
)
def test_member_that_cannot_be_mapped_is_refused(field: str, value: int, message: str) -> None:
    data = written(MEMBERS.items())
    member = entries(data)[0]
    setattr(member, field, value)
    with pytest.raises(ArtifactError) as caught:
        span_of(memoryview(data), member)
    assert str(caught.value) == message


def test_lengths_of_the_local_header_count() -> None:
    data = bytearray(written([("a", b"abc")]))
    struct.pack_into("<H", data, 28, 0xFFFF)
    with pytest.raises(ArtifactError, match="ends behind the end of the file"):
        span_of(memoryview(bytes(data)), entries(written([("a", b"abc")]))[0])
