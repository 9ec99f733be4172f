"""GGUF archives: the reader, and refusals of damaged files."""

import struct
from pathlib import Path

import numpy as np
import pytest
from iree.runtime import ParameterIndex

from pelton.runtime.archive import gguf, open_archive
from pelton.runtime.archive.parameter import Parameter
from pelton.runtime.errors import ArtifactError, ParameterError
from tests.runtime.archives import WEIGHT, gguf_file, text


def read(data: bytes) -> dict[str, Parameter]:
    return {p.name: p for p in gguf.read(np.frombuffer(data, np.uint8))}


def test_tensors_are_read_with_the_slowest_dimension_first(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf_file())
    np.testing.assert_array_equal(open_archive(path)["weight"].array(), WEIGHT)


def test_quantised_tensor_keeps_its_bytes_and_type_name() -> None:
    quantised = read(gguf_file())["quantised"]
    assert str(quantised) == "quantised (Q8_0 2x32)"
    assert quantised.contents().tobytes() == bytes(range(68))
    with pytest.raises(ParameterError, match="not known"):
        quantised.array()


def test_iree_finds_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf_file())
    index = ParameterIndex()
    index.load(str(path))
    theirs = {name: bytes(entry.file_view) for name, entry in index.items()}
    assert theirs == {name: p.contents().tobytes() for name, p in read(gguf_file()).items()}


def test_default_alignment_is_32() -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("a") + struct.pack("<IQIQ", 1, 2, 24, 0)
    assert read(head + bytes(-len(head) % 32) + b"\5\7")["a"].array().tolist() == [5, 7]


def head_of(tensor: bytes, pairs: bytes = b"", pair_count: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, 1, pair_count) + pairs + tensor + bytes(64)


TENSOR = text("a") + struct.pack("<IQIQ", 1, 2, 24, 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GGUX" + gguf_file()[4:], "does not start with GGUF"),
        (gguf_file()[:20], "is cut off"),
        (gguf_file()[:-1], "'quantised' ends at byte"),
        (head_of(TENSOR, version=1), "version is 1"),
        (head_of(TENSOR, pair_count=1 << 63), "cut off|value of type"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 63, 0) + TENSOR, "cut off"),
        (head_of(struct.pack("<Q", 1 << 62)), "cut off"),
        (head_of(text("a") + struct.pack("<I", 9)), "9 dimensions"),
        (head_of(text("a") + struct.pack("<IQIQ", 1, 1 << 63, 24, 0)), "more than memory holds"),
        (head_of(text("a") + struct.pack("<IQIQ", 1, 2, 99, 0)), "element type 99"),
        (head_of(text("a") + struct.pack("<IQIQ", 1, 33, 8, 0)), "not a multiple of 32"),
        (head_of(text("a") + struct.pack("<IQIQ", 1, 2, 24, 1 << 63)), "'a' ends at byte"),
        (head_of(TENSOR, text("k") + struct.pack("<I", 99), 1), "value of type 99"),
        (head_of(TENSOR, text("k") + struct.pack("<IIQ", 9, 9, 1), 1), "value of type 9"),
        (head_of(TENSOR, text("k") + struct.pack("<IIQ", 9, 0, 1 << 63), 1), "cut off"),
        (
            head_of(TENSOR, text("general.alignment") + struct.pack("<II", 4, 0), 1),
            "alignment is 0",
        ),
        (head_of(struct.pack("<Q", 1) + b"\xff" + bytes(16)), "not UTF-8"),
    ],
)
def test_broken_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read(data)


def test_overlapping_contents_are_refused() -> None:
    data = gguf_file().replace(struct.pack("<IQ", 8, 64), struct.pack("<IQ", 8, 16))
    with pytest.raises(ArtifactError, match="'weight' and 'quantised' overlap"):
        read(data)


def test_name_that_comes_twice_is_refused() -> None:
    two = struct.pack("<IQQ", 3, 2, 0)
    with pytest.raises(ArtifactError, match="more than once: 'a'"):
        read(b"GGUF" + two + TENSOR + TENSOR + bytes(64))
