import argparse
import json
from pathlib import Path

import pytest

from pelton import aot
from pelton.aot.targets.cache import CachedArtifact, CompileCache
from pelton.cli.cache import add_parser


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["cache", *map(str, arguments)])
    return int(args.run(args))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache with one artifact of 1,500 bytes."""

    def make(path: Path) -> CachedArtifact:
        path.write_bytes(b"x" * 1500)
        return CachedArtifact("cpu", ("prefill", "decode"))

    CompileCache(tmp_path / "cache", 10_000).build("ab" * 32, tmp_path / "a.vmfb", make)
    return tmp_path / "cache"


def test_list_shows_target_entry_points_and_size(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("ls", folder) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "abab" in line]
    cells = [cell.strip() for cell in row.split("│")[1:5]]
    assert cells == ["ab" * 6, "cpu", "prefill, decode", "1.5 kB"]


def test_list_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ls", folder, "--json") == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["key"] == "ab" * 32
    assert entry["size_bytes"] == 1500
    assert entry["made"]["entry_points"] == ["prefill", "decode"]
    assert Path(entry["path"]).read_bytes() == b"x" * 1500


def test_clear_empties_the_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("clear", folder) == 0
    assert "removed 1 artifact, 1.5 kB" in " ".join(capsys.readouterr().out.split())
    assert list(folder.iterdir()) == []


def test_folder_is_the_configured_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with aot.config.using(cache_dir=folder):
        assert run("ls", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_cache_that_does_not_exist_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("ls", tmp_path / "none", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []
    assert run("clear", tmp_path / "none") == 0
