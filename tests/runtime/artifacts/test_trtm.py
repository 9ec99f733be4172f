"""Packages (`.trtm`): round trips, and refusals of damaged or inconsistent files."""

from __future__ import annotations

import io
import json
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pelton import aot
from pelton.runtime.artifacts import stored_zip
from pelton.runtime.artifacts.entry_points import Bounds, Port, member_name
from pelton.runtime.artifacts.manifest import Manifest
from pelton.runtime.artifacts.trtm import Contents, open_trtm, write_trtm
from pelton.runtime.errors import ArtifactError
from tests.packages import package
from tests.runtime.programs import Counter, rows

pytest.importorskip("onnxscript")

ENGINE = member_name("engine", "main")
Parts = tuple[Manifest, dict[str, Contents]]


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    out = aot.export(Counter(), args=(torch.zeros(4),))
    return package(out, tmp_path_factory.mktemp("counter"))


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    out = aot.export(lambda x: x + 1, args=[rows(1, 8)])
    return package(out, tmp_path_factory.mktemp("sized"))


@pytest.fixture
def path(counter: Parts, tmp_path: Path) -> Path:
    write_trtm(tmp_path / "m.trtm", *counter)
    return tmp_path / "m.trtm"


def refusal(path: Path, read: str | None = None) -> str:
    with pytest.raises(ArtifactError) as caught:
        found = open_trtm(path)
        if read:
            found.read(read)
    return str(caught.value)


def rewritten(path: Path, change: Callable[[dict[str, bytes]], Any], **options: Any) -> Path:
    """Write a package again by other means, with changed members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def with_manifest(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    def apply(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        change(manifest)
        members["manifest.json"] = json.dumps(manifest).encode()

    return rewritten(path, apply)


def test_package_is_read_as_it_was_written(path: Path, counter: Parts) -> None:
    manifest, members = counter
    found = open_trtm(path)
    assert replace(found.manifest, members={}) == manifest
    for name, contents in members.items():
        expected = contents.read_bytes() if isinstance(contents, Path) else bytes(contents)
        assert bytes(found.read(name)) == expected


def test_profiles_and_bounds_are_read_as_they_were_written(sized: Parts, tmp_path: Path) -> None:
    write_trtm(tmp_path / "m.trtm", *sized)
    (function,) = open_trtm(tmp_path / "m.trtm").manifest.functions
    assert function.profiles[0].inputs == {"x": Bounds((1, 4), (2, 4), (8, 4))}
    assert function.signature == sized[0].functions[0].signature


def test_state_is_read_with_its_types(path: Path) -> None:
    state = open_trtm(path).initial_state
    assert {name: str(value.dtype) for name, value in state.items()} == {
        "total": "float32",
        "odd": "bool",
        "calls": "int64",
    }
    np.testing.assert_array_equal(state["total"].array(), np.zeros(4, np.float32))


def test_members_lie_at_multiples_of_64_bytes(path: Path, counter: Parts) -> None:
    found = open_trtm(path)
    for name in counter[1]:
        address = np.frombuffer(found.read(name), np.uint8).ctypes.data
        assert address % 64 == 0


def test_same_members_give_the_same_bytes(path: Path, counter: Parts, tmp_path: Path) -> None:
    write_trtm(tmp_path / "again.trtm", *counter)
    assert (tmp_path / "again.trtm").read_bytes() == path.read_bytes()


def test_any_zip_tool_reads_it(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "manifest.json"
        assert archive.read(ENGINE) == b"engine of main"


def test_view_of_a_member_outlives_the_package_and_its_file(path: Path) -> None:
    view = open_trtm(path).read(ENGINE)
    path.unlink()
    assert bytes(view) == b"engine of main"


def test_file_is_streamed_into_a_package(counter: Parts, tmp_path: Path) -> None:
    manifest, members = counter
    engine = tmp_path / "plan"
    engine.write_bytes(bytes(range(256)) * 200_000)  # three chunks
    write_trtm(tmp_path / "m.trtm", manifest, {**members, ENGINE: engine})
    assert open_trtm(tmp_path / "m.trtm").read(ENGINE) == engine.read_bytes()


def test_failed_write_leaves_the_old_package(path: Path, counter: Parts, tmp_path: Path) -> None:
    before = path.read_bytes()
    manifest, members = counter
    with pytest.raises(ArtifactError, match=r"cannot write .*m.trtm: .*No such file"):
        write_trtm(path, manifest, {**members, ENGINE: tmp_path / "missing"})
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.trtm"]


def test_file_that_changes_while_it_is_written_is_refused(
    counter: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, members = counter
    (tmp_path / "plan").write_bytes(b"before")
    write = stored_zip.write

    def change_and_write(*args: Any) -> None:
        (tmp_path / "plan").write_bytes(b"after.")
        write(*args)

    monkeypatch.setattr(stored_zip, "write", change_and_write)
    with pytest.raises(ArtifactError, match=r"m.trtm: engines/main.engine changed while it was"):
        write_trtm(tmp_path / "m.trtm", manifest, {**members, ENGINE: tmp_path / "plan"})
    assert [file.name for file in tmp_path.iterdir()] == ["plan"]


def test_missing_member_is_refused_when_written(counter: Parts, tmp_path: Path) -> None:
    manifest, members = counter
    without = {name: contents for name, contents in members.items() if name != ENGINE}
    with pytest.raises(ArtifactError, match=r"function 'main' has no member engines/main.engine"):
        write_trtm(tmp_path / "m.trtm", manifest, without)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "/x", "a/../b", "a\\b", "a/b/c", "..", "a//b", "ä"])
def test_member_that_leads_elsewhere_is_refused(
    counter: Parts, path: Path, tmp_path: Path, name: str
) -> None:
    manifest, members = counter
    with pytest.raises(ArtifactError, match="is not a valid member name"):
        write_trtm(tmp_path / "other.trtm", manifest, {**members, name: b"x"})
    text = refusal(rewritten(path, lambda members: members.update({name: b"x"})))
    assert "is not a valid member name" in text and str(path) in text


@pytest.mark.parametrize("function", ["a/b", "..", "ünïcode", "a b", "x" * 90])
def test_any_name_of_a_function_gives_a_member(function: str) -> None:
    name = member_name("engine", function)
    assert len(name.split("/")) == 2 and name.isascii() and " " not in name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "the manifest has format 2, this version of Pelton reads format 1"),
        ({"format": None}, "the manifest has format None"),
        ({"flavor": "amd"}, "manifest.flavor is 'amd', expected one of 'rtx', 'tensorrt'"),
        ({"functions": []}, "the package has no entry point"),
        ({"functions": 3}, "manifest.functions is 3, expected an array"),
        (
            {"functions": [{}]},
            "manifest.functions[0] lacks 'inputs', 'members', 'notes', 'outputs'",
        ),
        ({"members": {}}, "function 'main' has no member engines/main.engine"),
        ({"members": {"x": [-1, ""]}}, "x has -1 bytes"),
        ({"members": {"x": [1, "ab"]}}, "the SHA-256 of x is 'ab', expected 64 hexadecimal digits"),
        (
            {"members": {"x": [1]}},
            "manifest.members['x'] is [1], expected an array of nbytes, sha256",
        ),
        ({"more": 1}, "manifest has unknown 'more'"),
        ({"versions": {"pelton": 1}}, "manifest.versions['pelton'] is 1, expected a string"),
        ({"compute_capabilities": [8.6]}, "compute_capabilities[0] is 8.6, expected a string"),
    ],
)
def test_wrong_manifest_is_refused(path: Path, changes: dict[str, Any], message: str) -> None:
    text = refusal(with_manifest(path, lambda manifest: manifest.update(changes)))
    assert text.startswith(f"{path} is not a valid TensorRT package: ") and message in text


def changed_port(index: int, side: str = "inputs", **changes: Any) -> Callable[[Any], Any]:
    return lambda manifest: manifest["functions"][0][side][index].update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            changed_port(0, dtype="float99"),
            "functions[0].inputs[0].dtype: unknown element type 'float99'",
        ),
        (changed_port(0, dtype="int8"), "port 'x' (int8[4]) is not float32[4]"),
        (changed_port(0, number=True), "port 'x' (float32[4]) is not float32[4]"),
        (changed_port(0, kind="state"), "the inputs of function 'main' are 0 ports for 1 leaves"),
        (changed_port(0, shape=["n"]), "'x' of function 'main' has unknown sizes ['n']"),
        (changed_port(0, shape=[["^", 1, 2]]), "is not a size"),
        (changed_port(1, shape=["?"]), "has no fixed shape"),
        (changed_port(1, dtype="int8"), "elsewhere"),
        (changed_port(1, name="x"), "these names occur more than once: 'x'"),
        (changed_port(0, "outputs", kind="parameter"), "are 0 ports for 1 leaves"),
    ],
)
def test_ports_that_do_not_fit_are_refused(
    path: Path, change: Callable[[Any], Any], message: str
) -> None:
    assert message in refusal(with_manifest(path, change))


def test_bounds_that_do_not_fit_are_refused(sized: Parts, tmp_path: Path) -> None:
    path = tmp_path / "m.trtm"
    for bounds, message in (
        ({"y": [[1], [2], [3]]}, "has no input 'y'"),
        ({"x": [[1], [2], [3]]}, "'x' of function 'main' has bounds of another rank"),
        ({"x": [[1, 4], [2, 4]]}, "expected an array of min, opt, max"),
        ({"x": [[1, 4], [2, 4], [3, "n"]]}, "['x'].max[1] is 'n', expected an integer"),
    ):
        write_trtm(path, *sized)
        change = {"profiles": [["default", bounds]]}
        with_manifest(path, lambda manifest, change=change: manifest["functions"][0].update(change))
        assert message in refusal(path)


def test_tampered_member_is_one_clear_sentence_when_it_is_read(path: Path) -> None:
    rewritten(path, lambda members: members.update({ENGINE: b"engine of evil"}))
    assert bytes(open_trtm(path).read(member_name("reference", "main")))
    text = refusal(path, read=ENGINE)
    assert text.startswith(f"{path} is damaged: the SHA-256 of {ENGINE} is ")


def test_member_of_another_size_is_refused_at_once(path: Path) -> None:
    rewritten(path, lambda members: members.update({ENGINE: b"longer than before"}))
    assert f"{ENGINE} has 18 bytes, the manifest says 14" in refusal(path)


def test_unknown_missing_and_duplicate_members_are_refused(path: Path, tmp_path: Path) -> None:
    def copied(name: str) -> Path:
        return Path(shutil.copy(path, tmp_path / name))

    more = rewritten(copied("more.trtm"), lambda members: members.update(extra=b""))
    assert "its manifest does not list extra" in refusal(more)
    less = rewritten(copied("less.trtm"), lambda members: members.pop(ENGINE))
    assert f"it lacks {ENGINE}" in refusal(less)
    twice = copied("twice.trtm")
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(twice, "a") as archive:
        archive.writestr(ENGINE, b"engine of main")
    assert f"these names occur more than once: '{ENGINE}'" in refusal(twice)


def test_compressed_members_are_refused(path: Path) -> None:
    compressed = rewritten(path, lambda members: None, compression=zipfile.ZIP_DEFLATED)
    assert "manifest.json is not stored as it is" in refusal(compressed)


def test_state_that_is_not_what_the_manifest_says_is_refused(path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        for side in ("inputs", "outputs"):
            for port in manifest["functions"][0][side]:
                if port["origin"] == "total" and port["kind"] == "state":
                    port["shape"] = [5]

    with pytest.raises(ArtifactError, match=r"has total \(float32 4\), expected float32\[5\]"):
        _ = open_trtm(with_manifest(path, change)).initial_state


def test_every_truncation_is_refused(path: Path) -> None:
    data = path.read_bytes()
    chance = random.Random(0)
    for length in sorted(chance.sample(range(len(data)), 60)):
        path.write_bytes(data[:length])
        refusal(path)


def test_flipped_bits_are_refused_or_change_nothing(path: Path, counter: Parts) -> None:
    data, chance = path.read_bytes(), random.Random(1)
    expected = {name: bytes(open_trtm(path).read(name)) for name in counter[1]}
    damaged = path.with_name("damaged.trtm")
    refused = 0
    for _ in range(300):
        changed = bytearray(data)
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        damaged.write_bytes(changed)
        try:
            found = open_trtm(damaged)
            assert {name: bytes(found.read(name)) for name in expected} == expected
        except ArtifactError as error:
            refused += 1
            assert str(damaged) in str(error)
    assert refused > 200


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.trtm"
    path.write_bytes(b"hello")
    assert refusal(path) == f"{path} is not a TensorRT package: its content is unknown"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", "[]")
    assert "the manifest is not a JSON object" in refusal(path)


class Sink(io.RawIOBase):
    """A very large file, of which only small writes are stored."""

    def __init__(self) -> None:
        self.position, self.stored = 0, dict[int, bytes]()

    def write(self, data: Any) -> int:
        if len(data) < 1 << 20:
            self.stored[self.position] = bytes(data)
        self.position += len(data)
        return len(data)

    def seek(self, position: int, whence: int = 0) -> int:
        assert whence == 0
        self.position = position
        return position

    def tell(self) -> int:
        return self.position

    def seekable(self) -> bool:
        return True


def test_member_above_4_gib_has_its_size_and_starts_aligned() -> None:
    piece, sink = memoryview(bytes(64 << 20)), Sink()
    stored_zip.write(sink, [("large", iter([piece] * 66), 66 << 26)])  # type: ignore[arg-type]
    header = sink.stored[0]
    assert len(header) % stored_zip.ALIGNMENT == 0
    assert struct.pack("<QQ", 66 << 26, 66 << 26) in header


def test_ports_come_from_those_of_the_compiler(counter: Parts) -> None:
    total = counter[0].state["total"]
    assert total == Port("state.total", "state", "total", total.dtype, (4,))
    assert counter[0].functions[0].ports("state").keys() == {"total", "odd", "calls"}
