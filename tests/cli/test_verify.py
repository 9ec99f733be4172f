from pathlib import Path

import pytest

from pelton.cli import main

NET = ["verify", "net.mlirbc", "net.vmfb", "--parameters", "net.irpa"]


def test_a_right_artifact_is_shown_to_agree(
    net: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(net)
    assert main(NET) == 0
    out = capsys.readouterr().out
    assert "net.vmfb against the exported module in PyTorch: agrees, 20 comparisons" in out
    assert "max (b=8)" in out
    assert main([*NET, "--against", "cli_programs:make_net"]) == 0


def test_a_difference_is_an_error(
    net: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(net)
    assert main([*NET, "--against", "cli_programs:make_other_net", "--seeds", "1"]) == 1
    printed = capsys.readouterr()
    assert "DIFFERS" in printed.out
    assert printed.err.startswith("pelton: error: net.vmfb differs from eager PyTorch in ")


def test_options_reach_the_verification(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = ["--input", "n=1..9xi64", "-o", "t.mlirbc"]
    assert main(["export", "cli_programs:third_row", *spec]) == 0
    assert main(["compile", "t.mlirbc", "-o", "t.vmfb"]) == 0
    options = ["--integers", "i=2..3", "--sizes", "n=6", "--tolerance", "float32=0"]
    assert main(["verify", "t.mlirbc", "t.vmfb", *options]) == 0
    out = capsys.readouterr().out
    assert "i in (2, 3) (as asked)" in out
    assert "asked (n=6)" in out


@pytest.mark.parametrize(
    "option", [["--integers", "i=3"], ["--sizes", "i"], ["--tolerance", "float32"]]
)
def test_an_unreadable_option_is_wrong_usage(option: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["verify", "n.mlirbc", "n.vmfb", *option])
