"""IREE parameter archives: golden bytes, the reader, and refusals of damaged files."""

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from iree.runtime import ParameterIndex, parameter_index_entry_as_numpy_ndarray

from pelton.runtime.archive import irpa, open_archive, write_archive
from pelton.runtime.archive.parameter import Parameter, parameter_of
from pelton.runtime.errors import ArtifactError, ParameterError
from tests.runtime.archives import SPLAT, WEIGHT, varied_parameters

GOLDEN = (
    b"IRPA" + struct.pack("<HHQQQ", 0, 0, 88, 0, 0)  # version, header size, next header, flags
    + struct.pack("<Q6Q", 1, 96, 76, 172, 58, 256, 2)  # entries, then the three segments
    + bytes(8)
    + struct.pack("<QIQQQQQQ", 76, 2, 0, 0, 1, 1, 57, 64) + struct.pack("<QQ", 0, 2)
    + b'aPYTORCH:{"type": "Tensor", "dtype": "int8", "shape": [2]}'
    + bytes(26) + b"\5\7" + bytes(4096 - 258)
)  # fmt: skip


def read(data: bytes) -> dict[str, Parameter]:
    return {p.name: p for p in irpa.read(np.frombuffer(data, np.uint8))}


def patched(offset: int, form: str, value: int) -> bytes:
    data = bytearray(GOLDEN)
    struct.pack_into(form, data, offset, value)
    return bytes(data)


def test_file_has_the_golden_bytes(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("a", np.array([5, 7], np.int8))])
    assert (tmp_path / "a.irpa").read_bytes() == GOLDEN


def test_file_has_the_bytes_that_iree_writes(tmp_path: Path) -> None:
    parameters = [p for p in varied_parameters() if p.name != "tied"]
    index = ParameterIndex()
    for p in (*parameters, SPLAT):
        about = irpa.metadata(p) or None
        if p.splat:
            index.add_splat(p.name, p.data, p.nbytes, metadata=about)
        else:
            index.add_buffer(p.name, p.contents(), metadata=about)
    index.create_archive_file(str(tmp_path / "theirs.irpa"))
    write_archive(tmp_path / "ours.irpa", [*parameters, SPLAT])
    assert (tmp_path / "ours.irpa").read_bytes() == (tmp_path / "theirs.irpa").read_bytes()


def test_file_is_read_by_iree(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", varied_parameters())
    index = ParameterIndex()
    index.load(str(tmp_path / "a.irpa"))
    entries = dict(index.items())
    assert {n: bytes(e.file_view) for n, e in entries.items()} == {
        p.name: p.contents().tobytes() for p in varied_parameters()
    }
    array = parameter_index_entry_as_numpy_ndarray(entries["tied"])
    np.testing.assert_array_equal(array, WEIGHT)


def test_file_of_iree_is_read(tmp_path: Path) -> None:
    from iree.runtime import SplatValue, parameter_index_add_numpy_ndarray, save_archive_file

    index = ParameterIndex()
    parameter_index_add_numpy_ndarray(index, "weight", WEIGHT)
    index.create_archive_file(str(tmp_path / "typed.irpa"))
    np.testing.assert_array_equal(open_archive(tmp_path / "typed.irpa")["weight"].array(), WEIGHT)

    save_archive_file({"s": SplatValue(np.int16(3), [5]), "w": WEIGHT}, tmp_path / "raw.irpa")
    raw = open_archive(tmp_path / "raw.irpa")
    assert raw["s"].splat and raw["s"].contents().tobytes() == b"\3\0" * 5
    assert str(raw["w"]) == "w (blob of 24 bytes)"


def test_file_is_listed_by_iree_dump_parameters(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [*varied_parameters(), SPLAT])
    tool = Path(sys.executable).with_name("iree-dump-parameters")
    command = [str(tool), f"--parameters={tmp_path / 'a.irpa'}"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for parameter in (*varied_parameters(), SPLAT):
        assert f"| `{parameter.name}`" in listing


def test_all_parameters_come_back_as_they_were(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [*varied_parameters(), SPLAT])
    found = open_archive(tmp_path / "a.irpa")
    for p in (*varied_parameters(), SPLAT):
        assert (found[p.name].type_name, found[p.name].shape) == (p.type_name, p.shape)
        assert found[p.name].contents().tobytes() == p.contents().tobytes()


def test_tied_tensors_are_stored_once(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", varied_parameters())
    found = open_archive(tmp_path / "a.irpa")
    assert found["tied"].identity() == found["weight"].identity()


def test_splat_stays_a_splat(tmp_path: Path) -> None:
    huge = Parameter("huge", "float32", (1 << 40,), 1 << 42, SPLAT.data, True)
    write_archive(tmp_path / "a.irpa", [huge])
    assert (tmp_path / "a.irpa").stat().st_size == 4096
    assert open_archive(tmp_path / "a.irpa")["huge"].array()[1 << 39] == 10


def test_archives_chained_in_one_file_are_all_read() -> None:
    second = GOLDEN.replace(b"aPYTORCH", b"bPYTORCH")
    chained = bytearray(GOLDEN + second)
    struct.pack_into("<Q", chained, 16, len(GOLDEN))
    assert list(read(bytes(chained))) == ["a", "b"]


def test_skipped_entry_is_passed_over() -> None:
    assert read(patched(104, "<I", 0)) == {}


def test_unknown_element_type_of_an_entry_is_refused_when_it_is_used() -> None:
    found = read(GOLDEN.replace(b'"int8"', b'"int3"'))["a"]
    with pytest.raises(ParameterError, match=r"a \(int3 2\).*not known"):
        found.array()


def test_unknown_element_type_is_not_written(tmp_path: Path) -> None:
    block = Parameter("block", "Q4_0", (32,), 18, np.zeros(18, np.uint8))
    with pytest.raises(ParameterError, match=r"block \(Q4_0 32\)"):
        write_archive(tmp_path / "a.irpa", [block])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GOLDEN[:60], "ends within the header"),
        (patched(0, "<I", 0), "no archive header"),
        (patched(4, "<H", 1), "version is 1.0"),
        (patched(8, "<Q", 89), "header claims 89 bytes"),
        (patched(16, "<Q", 1 << 63), "ends within the header"),
        (patched(16, "<Q", 256), "no archive header"),
        (patched(32, "<Q", 1 << 60), "more than fit into the file"),
        (patched(32, "<Q", 2), "table of entries is cut off"),
        (patched(40, "<Q", 1 << 62), "table of entries end"),
        (patched(64, "<Q", 1 << 62), "texts end"),
        (patched(80, "<Q", 1 << 62), "contents end"),
        (patched(96, "<Q", 5), "entry of 5 bytes"),
        (patched(96, "<Q", 1 << 62), "entry of"),
        (patched(104, "<I", 3), "kind 3"),
        (patched(124, "<Q", 1 << 62), "names and metadata are longer|name of an entry end"),
        (patched(156, "<Q", 1), "contents of 'a' end"),
        (patched(164, "<Q", 3), "contents of 'a' end"),
        (patched(164, "<Q", 1), "takes 2 bytes, but has 1"),
        (GOLDEN.replace(b"[2]", b"[-]"), "is not JSON"),
        (GOLDEN.replace(b"[2]", b'"2"'), "not a list of sizes"),
        (GOLDEN.replace(b"a" + b"PYTORCH", b"\xff" + b"PYTORCH"), "not UTF-8"),
    ],
)
def test_broken_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read(data)


def test_overlapping_contents_are_refused(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("a", WEIGHT), parameter_of("b", WEIGHT + 1)])
    data = bytearray((tmp_path / "a.irpa").read_bytes())
    start = data.index(struct.pack("<QQ", 64, 24))
    struct.pack_into("<Q", data, start, 4)
    with pytest.raises(ArtifactError, match="'a' and 'b' overlap"):
        read(bytes(data))


def test_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("a", WEIGHT), parameter_of("b", WEIGHT)])
    data = (tmp_path / "a.irpa").read_bytes().replace(b"bPYTORCH", b"aPYTORCH")
    with pytest.raises(ArtifactError, match="more than once: 'a'"):
        read(data)
