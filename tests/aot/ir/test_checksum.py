"""Checksums in the head of bytecode files: written once, checked, and absent in other files."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pelton import aot
from pelton.aot.ir.checksum import MAGIC, ChecksumWriter, check
from pelton.aot.ir.module import new_module

PATH = Path("net.mlirbc")


def written(pieces: list[bytes]) -> bytes:
    file = io.BytesIO()
    writer = ChecksumWriter(file)
    for piece in pieces:
        assert writer.write(piece) == len(piece)
    writer.finish()
    return file.getvalue()


HEAD = MAGIC + b"\x0dMLIR23.0\0"


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_pieces_of_any_size_give_the_same_file(size: int) -> None:
    data = HEAD + bytes(range(256)) * 3
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    assert written(pieces) == written([data])


def test_the_field_leaves_the_rest_as_it_was() -> None:
    data = HEAD + b"body"
    found = written([data])
    producer, _, rest = found.partition(b" pelton-crc32:")
    assert producer == HEAD[:-1]
    assert len(found) == len(data) + 64 and rest.endswith(b"\0body")


def test_a_file_without_a_body_has_a_checksum() -> None:
    check(PATH, written([HEAD]))


@pytest.mark.parametrize("where", [4, 10, 90, -1])
def test_each_changed_byte_is_found(where: int) -> None:
    data = bytearray(written([HEAD + b"x" * 40]))
    data[where] ^= 1
    with pytest.raises(
        aot.ArtifactError, match=r"net.mlirbc is damaged: its checksum is \w{8}, ex"
    ):
        check(PATH, bytes(data))


def test_a_shortened_file_is_found() -> None:
    with pytest.raises(aot.ArtifactError, match="is damaged"):
        check(PATH, written([HEAD + b"x" * 40])[:-1])


def test_bytecode_of_mlir_is_checked_without_a_second_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = io.BytesIO()
    writer = ChecksumWriter(file)
    new_module("net").write_bytecode(writer)
    writer.finish()
    monkeypatch.setattr("subprocess.run", None)
    check(PATH, file.getvalue())


def test_files_without_a_checksum_are_read_by_a_second_process(tmp_path: Path) -> None:
    path = tmp_path / "net.mlir"
    path.write_text("module {}")
    check(path, path.read_bytes())
    path.write_text("module {")  # the error is that of the reader in this process
    check(path, path.read_bytes())
