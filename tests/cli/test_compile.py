from pathlib import Path

import pytest

from pelton.cli import main
from pelton.runtime.artifacts.vmfb import read_info


def test_options_reach_the_target(net: Path, tmp_path: Path) -> None:
    options = ["-O", "1", "--cpu", "generic", "--flag=--iree-opt-data-tiling", "--no-isolate"]
    target = str(tmp_path / "m.vmfb")
    assert main(["compile", str(net / "net.mlirbc"), "-o", target, *options]) == 0
    info = read_info(target)
    assert info.target["cpu"] == "generic"
    assert info.options["optimization_level"] == 1
    assert info.options["flags"] == ["--iree-opt-data-tiling"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "cpuu"], "unknown target 'cpuu'; known: cpu, "),
        (["--target", "rocm"], "target 'rocm' needs an architecture, as in 'rocm:gfx942'"),
        (["--flag=--no-such-flag"], "no-such-flag"),
    ],
)
def test_a_failure_is_one_line_and_leaves_no_file(
    arguments: list[str],
    message: str,
    net: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "m.vmfb"
    assert main(["compile", str(net / "net.mlirbc"), "-o", str(target), *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("pelton: error: ") and error.count("\n") == 1
    assert message in error
    assert list(tmp_path.iterdir()) == []


def test_verbose_shows_diagnostics_and_traceback(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "m.vmfb")
    source = str(net / "net.mlirbc")
    flag = "--flag=--no-such-flag"
    assert main(["compile", "--verbose", source, "-o", target, flag]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback") and lines[-1].startswith("pelton: error: ")


def test_an_impossible_level_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["compile", "m.mlirbc", "-o", "m.vmfb", "-O", "9"])
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["missing.mlirbc", "cli_programs.py"])
def test_what_is_no_module_is_refused(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", name, "-o", "m.vmfb"]) == 1
    assert name in capsys.readouterr().err
