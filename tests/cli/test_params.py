import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from pelton.cli.params import add_parser
from pelton.runtime.archive import open_archive, write_archive
from pelton.runtime.archive.parameter import Parameter, blob_of, parameter_of
from pelton.runtime.errors import ArtifactError

WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["params", *map(str, arguments)])
    return int(args.run(args))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    parameters = [
        parameter_of("weight", WEIGHT),
        parameter_of("[tied]", WEIGHT),
        blob_of("tokens", b"abc"),
        Parameter("splat", "int8", (), 1, np.zeros(1, np.uint8), splat=True),
    ]
    write_archive(tmp_path / "a.irpa", parameters)
    return tmp_path / "a.irpa"


def test_list_shows_names_types_shapes_and_sizes(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("list", archive) == 0
    rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert [[cell.strip() for cell in row[1:-1]] for row in rows] == [
        ["weight", "float32", "2x3", "24 bytes"],
        ["[tied]", "float32", "2x3", "= weight"],
        ["tokens", "blob", "3", "3 bytes"],
        ["splat", "int8", "scalar", "splat"],
    ]


def test_list_prints_json(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", archive, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed[0] == {
        "name": "weight", "type": "float32", "shape": [2, 3], "nbytes": 24, "splat": False
    }  # fmt: skip
    assert listed[2]["type"] is None


def test_convert_writes_the_same_parameters(archive: Path, tmp_path: Path) -> None:
    assert run("convert", archive, tmp_path / "b.safetensors") == 0
    found = open_archive(tmp_path / "b.safetensors")
    np.testing.assert_array_equal(found["[tied]"].array(), WEIGHT)


def test_convert_joins_files(archive: Path, tmp_path: Path) -> None:
    write_archive(tmp_path / "b.safetensors", [parameter_of("more", WEIGHT)])
    assert run("convert", archive, tmp_path / "b.safetensors", tmp_path / "c.irpa") == 0
    assert set(open_archive(tmp_path / "c.irpa")) == {*open_archive(archive), "more"}


def test_nothing_but_results_is_printed_where_there_is_no_terminal(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("convert", archive, tmp_path / "b.irpa")
    assert capsys.readouterr().err == ""


def test_diff_of_the_same_parameters_is_empty(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("convert", archive, tmp_path / "b.irpa")
    assert run("diff", archive, tmp_path / "b.irpa") == 0
    assert "the same" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (parameter_of("weight", WEIGHT + np.float32([0, 0, 0.5])), "values, by up to 0.5"),
        (parameter_of("weight", WEIGHT * np.float32(np.nan)), "values, by up to inf"),
        (parameter_of("weight", WEIGHT.T), "type or shape"),
        (parameter_of("weight", WEIGHT.astype(np.int32)), "type or shape"),
        (parameter_of("new", WEIGHT), "only there"),
    ],
)
def test_diff_tells_how_a_parameter_differs(
    other: Parameter, difference: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("weight", WEIGHT)])
    write_archive(tmp_path / "b.irpa", [other])
    assert run("diff", tmp_path / "a.irpa", tmp_path / "b.irpa") == 1
    assert difference in capsys.readouterr().out


def test_diff_of_blobs_has_no_distance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, blob in (("a.irpa", b"ab"), ("b.irpa", b"ac")):
        write_archive(tmp_path / name, [blob_of("blob", blob)])
    assert run("diff", tmp_path / "a.irpa", tmp_path / "b.irpa") == 1
    assert "by up to" not in capsys.readouterr().out


def test_check_passes_a_sound_archive(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", archive, "--like", archive) == 0
    assert "sound" in capsys.readouterr().out


def test_check_goes_on_after_an_unsound_archive(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.irpa").write_bytes(archive.read_bytes()[:100])
    assert run("check", tmp_path / "bad.irpa", archive) == 1
    words = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert "unsound" in words and "sound" in words


def test_check_counts_nan_and_infinities(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1], np.float16)
    write_archive(tmp_path / "a.irpa", [parameter_of("weight", values)])
    assert run("check", tmp_path / "a.irpa") == 1
    assert "1 NaN, 2 infinite values" in " ".join(capsys.readouterr().out.split())


def test_check_accepts_infinities(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("mask", np.array([-np.inf]))])
    assert run("check", tmp_path / "a.irpa") == 0


def test_check_compares_with_another_archive(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_archive(tmp_path / "b.irpa", [parameter_of("weight", WEIGHT.T)])
    assert run("check", tmp_path / "b.irpa", "--like", archive) == 1
    assert "of another shape (1): weight" in " ".join(capsys.readouterr().out.split())


def test_missing_file_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no such file"):
        run("list", tmp_path / "missing.irpa")
