import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pelton.cli
from pelton.cli import main
from pelton.runtime.errors import PeltonError

PELTON = [sys.executable, "-m", "pelton.cli"]
COMMANDS = ["export", "compile", "build", "run", "inspect", "params", "devices", "doctor"]

# The package's facade imports torch; here a package of the same folder without one takes its place.
WITHOUT_TORCH = """
import importlib.machinery, sys, types
package = types.ModuleType("pelton.aot")
package.__path__ = [sys.argv.pop(1)]
sys.modules["pelton.aot"] = package
sys.modules["torch"] = sys.modules["iree.compiler"] = None
from pelton.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_help_lists_the_subcommands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    assert [command for command in COMMANDS if f"\n    {command} " not in text] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_each_subcommand_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert f"usage: pelton {command}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["fly"], ["export"], ["inspect"], ["params"]])
def test_wrong_usage_has_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "error:" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_a_subcommand_of_another_file_is_plugged_in(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["params", "list", str(net / "net.irpa")]) == 0
    assert "linear.weight" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PeltonError("two\nlines"), "pelton: error: two lines"),
        (ZeroDivisionError("x"), "pelton: error: ZeroDivisionError: x (--verbose shows where)"),
        (PermissionError(13, "denied", "a.irpa"), "pelton: error: [Errno 13] denied: 'a.irpa'"),
    ],
)
def test_an_error_is_one_line(
    error: Exception,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(path: str) -> None:
        raise error

    monkeypatch.setattr(pelton.cli.inspect, "describe", fail)
    assert main(["inspect", "file"]) == 1
    assert capsys.readouterr().err == f"{line}\n"


def test_the_import_path_is_put_back(folder: Path) -> None:
    before = list(sys.path)
    main(["inspect", "missing"])
    assert sys.path == before


def test_stages_are_shown_on_a_terminal(net: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*PELTON, "compile", str(net / "net.mlirbc"), "-o", str(tmp_path / "m.vmfb")]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, stderr=theirs, stdout=subprocess.PIPE, env=environment) as child:
        os.close(theirs)
        shown = _read_all(ours)
        assert child.stdout is not None and child.stdout.read() == b""
    assert child.returncode == 0
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown)
    assert re.search(r"✓ compiling for cpu \d+\.\d s", text)
    assert re.search(r"m\.vmfb: \d+\.\d kB, compiled for cpu", text)


def _read_all(handle: int) -> str:
    data = b""
    try:
        while piece := os.read(handle, 4096):
            data += piece
    except OSError:  # the other side was closed
        pass
    finally:
        os.close(handle)
    return data.decode()


def test_nothing_is_said_where_there_is_no_terminal(folder: Path) -> None:
    spec = ["export", "cli_programs:net", "--input", "2x4xf32", "-o", "m.mlir"]
    done = subprocess.run([*PELTON, *spec], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_an_interrupt_has_status_130_and_no_traceback(folder: Path) -> None:
    command = [*PELTON, "export", "cli_programs:sleeps", "-o", "m.mlir"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as child:
        while not Path("sleeping").exists() and child.poll() is None:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=60)
    assert (child.returncode, error) == (130, b"")


def test_a_reader_that_had_enough_is_no_error(net: Path) -> None:
    command = [*PELTON, "inspect", "--json", str(net / "net.vmfb")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "net.vmfb", "--input", "1x4xf32", "--parameters", "net.irpa"],
        ["inspect", "net.vmfb"],
        ["params", "list", "net.irpa"],
        ["devices"],
        ["doctor"],
        ["--help"],
    ],
)
def test_neither_torch_nor_the_compiler_is_imported(arguments: list[str], net: Path) -> None:
    folder = str(Path(pelton.cli.__file__).parents[1])
    command = [sys.executable, "-c", WITHOUT_TORCH, folder, *arguments]
    subprocess.run(command, cwd=net, check=True, capture_output=True)
