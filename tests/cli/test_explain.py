"""`pelton explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pelton.cli import main


def test_a_page_tells_graphs_operators_and_guards(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "cli_programs:make_net", "--input", "b=2..8x4xf32"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("1 graph, 0 breaks\n")
    assert "dynamic   x.shape[0]: 2 or more" in page
    row = next(line.split() for line in page.splitlines() if "aten.relu.default" in line)
    assert row == ["aten.relu.default", "1", "whole", "whole"]
    assert "2 <= x.shape[0]" in page


def test_json_holds_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = ["--input", "2xf32=1,2", "--input", "factor:3.0"]
    assert main(["explain", "cli_programs:scale", *inputs, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [operator["name"] for operator in found["graphs"][0]["operators"]] == [
        "aten.mul.Tensor",
        "aten.add.Tensor",
    ]


def test_inputs_that_do_not_fit_are_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "cli_programs:make_net", "--input", "2x5xf32"]) == 1
    assert "pelton: error: the program cannot be run" in capsys.readouterr().err
