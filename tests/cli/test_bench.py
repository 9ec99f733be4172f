"""`pelton bench`, as it is used from the shell."""

import json
from pathlib import Path

import pytest

from pelton.cli import main

RANDOM = """
import math
import os
import torch

def unseeded():
    layer = torch.nn.Linear(4, 2)
    layer.weight.data += int.from_bytes(os.urandom(1), "big") + os.getpid()
    return layer

NUMBER = math.exp(int.from_bytes(os.urandom(6), "big") / 2**48 * 60)

def by_process(x):
    return x + NUMBER
"""


@pytest.fixture
def more(folder: Path) -> Path:
    (folder / "bench_programs.py").write_text(RANDOM)
    return folder


def test_ways_are_measured_and_absent_ones_are_told(folder: Path, capsys) -> None:
    arguments = ["--targets", "cpu,onnxruntime,cuda", "--seconds", "0.05", "--threads", "1"]
    arguments += ["--input", "b=1..3..8x4xf32", "--json", "a.json", "--plot", "a.html"]
    assert main(["bench", "cli_programs:make_net", *arguments]) == 0
    said = capsys.readouterr().out
    assert "cuda: absent: no CUDA device on this machine" in said
    rows = {row["runner"]: row for row in json.loads(Path("a.json").read_text())["rows"]}
    assert list(rows) == ["eager", "cpu", "onnxruntime", "cuda"]
    for runner in ("eager", "cpu", "onnxruntime"):
        row = rows[runner]
        assert row["status"] == "measured", row["reason"]
        assert 0 < row["p10_milliseconds"] <= row["p50_milliseconds"] <= row["p90_milliseconds"]
        assert row["is_right"] and row["difference"] < 1e-5
        assert row["seconds"]["first call"] > 0
    assert set(rows["cpu"]["seconds"]) == {"capture", "compile", "first call"}
    assert rows["cpu"]["artifact_bytes"] > 1000
    assert rows["cpu"]["compiler_peak_bytes"] > 1e7
    assert "data:image/png;base64," in Path("a.html").read_text()


def test_results_that_differ_are_a_failure(more: Path, capsys) -> None:
    """A number of each process is a constant of its program, so that results differ."""
    arguments = ["--input", "4xf32", "--targets", "cpu", "--seconds", "0.01", "--threads", "1"]
    assert main(["bench", "bench_programs:by_process", *arguments, "--json", "a.json"]) == 1
    rows = json.loads(Path("a.json").read_text())["rows"]
    assert [row["is_right"] for row in rows] == [True, False]


def test_programs_with_other_weights_each_time_are_refused(more: Path, capsys) -> None:
    arguments = ["--input", "1x4xf32", "--targets", "cpu", "--seconds", "0.01", "--threads", "1"]
    assert main(["bench", "bench_programs:unseeded", *arguments]) == 1
    assert "other weights in another process" in capsys.readouterr().err


def test_program_that_eager_cannot_run_is_an_error(folder: Path, capsys) -> None:
    arguments = ["--input", "3x5xf32", "--targets", "cpu", "--seconds", "0.01", "--threads", "1"]
    assert main(["bench", "cli_programs:make_net", *arguments, "--json", "a.json"]) == 1
    assert "eager cannot run the program: RuntimeError" in capsys.readouterr().err
    assert not Path("a.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--targets", "fast"], "unknown target 'fast'"),
        (["--input", "?x4xf32"], "a measured size needs a number"),
        (["--threads", "9999"], "threads must be 1 to"),
    ],
)
def test_wrong_usage_is_told_before_anything_runs(
    folder: Path, capsys, arguments: list[str], message: str
) -> None:
    assert main(["bench", "cli_programs:make_net", *arguments]) == 1
    assert message in capsys.readouterr().err
