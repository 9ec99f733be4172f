"""Files on disk: atomic writes and file kinds."""

import os
import stat
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from pelton.runtime.errors import ArtifactError
from pelton.runtime.files import FileKind, atomic_path, atomic_write, sniff

Writer = Callable[[Path], AbstractContextManager[object]]
WRITERS = [atomic_path, atomic_write]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_file_appears_under_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a.bin") as file:
        file.write(b"half")
        assert not (tmp_path / "a.bin").exists()
    assert names_in(tmp_path) == ["a.bin"]


def test_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"old")
    with atomic_path(tmp_path / "a.bin") as temporary:
        temporary.write_bytes(b"new")
        assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert (tmp_path / "a.bin").read_bytes() == b"new"


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, writer: Writer, error: type[BaseException]
) -> None:
    (tmp_path / "a.bin").write_bytes(b"old")
    with pytest.raises(error), writer(tmp_path / "a.bin"):
        raise error
    assert names_in(tmp_path) == ["a.bin"]
    assert (tmp_path / "a.bin").read_bytes() == b"old"


@pytest.mark.parametrize("writer", WRITERS)
def test_missing_folder_is_named(tmp_path: Path, writer: Writer) -> None:
    target = tmp_path / "missing" / "a.bin"
    with pytest.raises(ArtifactError) as caught, writer(target):
        pass
    assert str(caught.value) == f"cannot write {target}: folder {target.parent} does not exist"


@pytest.mark.parametrize("writer", WRITERS)
def test_folder_in_place_of_a_file_is_named(tmp_path: Path, writer: Writer) -> None:
    with pytest.raises(ArtifactError) as caught, writer(tmp_path):
        pass
    assert str(caught.value) == f"cannot write {tmp_path}: it is a folder; give the name of a file"


def test_file_has_the_permissions_that_the_umask_asks_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "a.bin"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.bin").stat().st_mode) == 0o640


def test_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    target = tmp_path / ("ü" * 127)
    with atomic_write(target) as file:
        file.write(b"x")
    assert target.read_bytes() == b"x"


def test_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a") as first, atomic_write(tmp_path / "a") as second:
        first.write(b"first")
        second.write(b"second")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert names_in(tmp_path) == ["a"]


# Kinds


@pytest.mark.parametrize(
    ("name", "contents", "kind"),
    [
        ("a", b"ML\xefR\x0d", FileKind.MLIR_BYTECODE),
        ("a.vmfb", b"ML\xefR\x0d", FileKind.MLIR_BYTECODE),
        ("a", b"module @m {}", FileKind.MLIR_TEXT),
        ("a", b"\n  builtin.module {}", FileKind.MLIR_TEXT),
        ("a", b"#map = affine_map<(d0) -> (d0)>", FileKind.MLIR_TEXT),
        ("a.mlir", b"func.func @f() {return}", FileKind.MLIR_TEXT),
        ("a", b"IRPA\0\0", FileKind.IRPA),
        ("a", b"GGUF\3\0", FileKind.GGUF),
        ("a", b"\x10\0\0\0\0\0\0\0{}", FileKind.SAFETENSORS),
        ("a", b"\x18\0\0\0IREE....", FileKind.VMFB),
        ("a.vmfb", b"nothing known", FileKind.UNKNOWN),
        ("a", b"PK\x05\x06" + bytes(18), FileKind.UNKNOWN),
        ("a", b"\0", FileKind.UNKNOWN),
    ],
)
def test_content_tells_the_kind_of_a_file(
    tmp_path: Path, name: str, contents: bytes, kind: FileKind
) -> None:
    (tmp_path / name).write_bytes(contents)
    assert sniff(tmp_path / name) is kind


@pytest.mark.parametrize(
    ("member", "kind"), [("module.fb", FileKind.VMFB), ("manifest.json", FileKind.TRTM)]
)
def test_first_member_tells_the_kind_of_a_zip(tmp_path: Path, member: str, kind: FileKind) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr(member, "{}")
    assert sniff(tmp_path / "a") is kind


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "no such file: {path}"),
        ("folder", "{path} is a folder; give the path of a file"),
        ("empty", "{path} is empty"),
    ],
)
def test_path_without_content_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    with pytest.raises(ArtifactError) as caught:
        sniff(tmp_path / name)
    assert str(caught.value) == message.format(path=tmp_path / name)
