"""ZIP directories: refusals of names, overlaps and sizes."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from pelton.runtime.artifacts import vmfb
from pelton.runtime.artifacts.zip_directory import MAX_DIRECTORY_BYTES, check_end
from pelton.runtime.errors import ArtifactError


def written(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), b"contents")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ArtifactError) as caught:
        vmfb.read_info(path)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "a/../../evil",
        "/etc/passwd",
        "a//b",
        "..",
        "./x",
        "C:\\x",
        "a\\..\\b",
        "a b",
        " ",
    ],
)
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "m.vmfb", "module.fb", name)
    assert refusal(path) == f"{path}: it holds {name!r}, which is not a valid member name"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "m.vmfb", "module.fb", "a", "a")
    assert refusal(path) == f"{path}: it holds 'a' twice"


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "m.vmfb", "module.fb", "other.fb")
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\1\2", data.index(b"PK\1\2") + 1)
    struct.pack_into("<I", data, entry + 42, 4)  # where the second one starts
    path.write_bytes(data)
    assert refusal(path) == f"{path}: its members 'module.fb' and 'other.fb' overlap"


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "m.vmfb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("module.fb", bytes(50 << 20))
    assert path.stat().st_size < 100_000
    assert refusal(path) == f"{path} is damaged: module.fb is not stored as it is"


def test_a_huge_directory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "m.vmfb", "module.fb", *(f"member{i:050}" for i in range(12_000)))
    assert refusal(path).startswith(f"{path} is damaged: its directory has ")


def test_the_size_of_a_large_directory_is_found_in_its_zip64_record(tmp_path: Path) -> None:
    record = struct.pack(
        "<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, MAX_DIRECTORY_BYTES + 1, 0
    )
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, 0, 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 0)
    path = tmp_path / "m.vmfb"
    path.write_bytes(b"PK\3\4" + record + locator + end)
    with pytest.raises(ArtifactError, match="its directory has 1048577 bytes"):
        check_end(path)
