import json
from pathlib import Path

import pytest

from pelton.cli import main
from pelton.runtime.archive import write_archive
from pelton.runtime.archive.parameter import blob_of

Capture = pytest.CaptureFixture[str]

SIGNATURE = "main(x: float32[b, 4]) -> (float32[b, 2]) where b=1..8"
WEIGHTS = [
    {"name": "linear.bias", "dtype": "float32", "shape": [2], "nbytes": 8},
    {"name": "linear.weight", "dtype": "float32", "shape": [2, 4], "nbytes": 32},
]


def inspected(capsys: Capture, *arguments: object) -> str:
    assert main(["inspect", *map(str, arguments)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ["net.mlirbc", "net.vmfb"])
def test_a_program_shows_its_interface(name: str, net: Path, capsys: Capture) -> None:
    text = inspected(capsys, net / name)
    assert f"  {SIGNATURE}\n" in text
    assert "cli_programs.py:" in text
    assert "pelton 0.1.0, torch 2." in text
    assert "parameters of scope 'model': 2, 40 bytes" in text
    assert "linear.weight   float32   2x4     32 bytes" in text


def test_an_artifact_shows_its_target(net: Path, capsys: Capture) -> None:
    text = inspected(capsys, net / "net.vmfb")
    assert "  target    llvm-cpu (" in text
    assert "  options   optimization_level=3\n" in text


def test_json_of_an_artifact(net: Path, capsys: Capture) -> None:
    found = json.loads(inspected(capsys, net / "net.vmfb", "--json"))
    assert found["kind"] == "IREE module (.vmfb)"
    assert found["nbytes"] == (net / "net.vmfb").stat().st_size
    assert found["target"]["backend"] == "llvm-cpu"
    assert sorted(found["parameters"]["model"], key=lambda line: str(line["name"])) == WEIGHTS
    (function,) = found["functions"]
    assert function["text"] == SIGNATURE
    assert function["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["b", 4]}]
    assert function["results"] == [{"dtype": "float32", "shape": ["b", 2]}]
    assert function["dims"] == [{"name": "b", "min": 1, "opt": 4, "max": 8}]


def test_json_of_an_archive(net: Path, capsys: Capture) -> None:
    found = json.loads(inspected(capsys, net / "net.irpa", "--json"))
    assert found["kind"] == "IREE parameter archive (.irpa)"
    assert sorted(found["parameters"][""], key=lambda line: str(line["name"])) == WEIGHTS


def test_state_constants_and_numbers(folder: Path, capsys: Capture) -> None:
    assert main(["export", "cli_programs:Counter", "--input", "i64", "-o", "c.mlir"]) == 0
    text = inspected(capsys, "c.mlir")
    assert "changes count" in text and "state\n  count: int64[]\n" in text
    inputs = ["--input", "2xf32", "--input", "shift:1..9"]
    assert main(["export", "cli_programs:scale", *inputs, "-o", "s.mlir"]) == 0
    found = json.loads(inspected(capsys, "s.mlir", "--json"))
    assert found["functions"][0]["inputs"][1:] == [
        {"name": "factor", "constant": 2.0},
        {"name": "shift", "number": "int"},
    ]


def test_an_artifact_for_another_machine(folder: Path, capsys: Capture) -> None:
    spec = ["cli_programs:net", "--input", "2x4xf32", "-o", "m.mlirbc"]
    assert main(["export", *spec]) == 0
    assert main(["compile", "m.mlirbc", "-o", "m.vmfb", "--target", "cuda:sm_80"]) == 0
    assert "target    cuda (sm_80)" in inspected(capsys, "m.vmfb")


def test_a_blob_has_no_type(tmp_path: Path, capsys: Capture) -> None:
    write_archive(tmp_path / "b.irpa", [blob_of("tokens", b"abc")])
    assert "tokens   blob   3       3 bytes" in inspected(capsys, tmp_path / "b.irpa")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"", "is empty"),
        (b"hello", "cannot be inspected: it is unknown; known: MLIR text, MLIR bytecode, "),
        (b"module {", "is no valid MLIR"),
        (b"PK\3\4 and no more", "is truncated or damaged"),
        (b"\0\0\0\0IREE....", "is bare bytecode without a checksum"),
        (b"IRPA", "is not a valid IREE parameter archive"),
    ],
)
def test_a_bad_file_is_one_line(
    content: bytes | None, message: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    assert main(["inspect", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("pelton: error: ") and error.count("\n") == 1
    assert message in error and str(path) in error
