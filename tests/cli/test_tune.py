"""`pelton tune`: what it prints of each variant, what it writes, and wrong usage."""

from __future__ import annotations

from pathlib import Path

import pytest

from pelton.aot import Tuned
from pelton.aot.verify.tuning import Trial
from pelton.cli import main
from pelton.cli.tune import _print

Capture = pytest.CaptureFixture[str]


def test_each_variant_has_its_time_or_its_problem(capsys: Capture) -> None:
    trials = (Trial("tiled", 1.23456), Trial("fused", 0.5), Trial("other", None, "[red] is wrong"))
    _print(Tuned("fused", trials))
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert rows[0] == ["variant", "ms"]
    assert rows[2:] == [
        ["tiled", "1.235"],
        ["fused", "0.500", "fastest"],
        ["other", "[red]", "is", "wrong"],
    ]


def test_an_output_is_required(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["tune", "m.mlir"])
    assert caught.value.code == 2
    assert "-o/--output" in capsys.readouterr().err


def test_what_cannot_be_tuned_is_one_line_and_writes_nothing(
    tmp_path: Path, capsys: Capture
) -> None:
    module, output = tmp_path / "m.mlir", tmp_path / "m.vmfb"
    module.write_text("func.func @main() { return }")
    assert main(["tune", str(module), "-o", str(output), "--target", "no-such"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("pelton: error: unknown target 'no-such'")
    assert err.count("\n") == 1
    assert not output.exists()


def test_tune_writes_the_fastest_variant(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from pelton.aot.targets.iree import levels
    from pelton.runtime import load

    few = {"tiled": levels.CPU_VARIANTS["tiled"]}
    monkeypatch.setattr("pelton.aot.targets.iree.target.CPU_VARIANTS", few)
    output = tmp_path / "net.vmfb"
    arguments = ["-o", str(output), "--seconds", "0.01", "--parameters", str(net / "net.irpa")]
    assert main(["tune", str(net / "net.mlirbc"), *arguments]) == 0
    assert "fastest" in capsys.readouterr().out
    assert load(output, parameters=net / "net.irpa").info.options["variant"] == "tiled"
