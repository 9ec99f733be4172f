"""An interrupt during a compile ends it at once, with no file and no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from .processes import alive, descendants

ROOT = Path(__file__).parents[2]
SECONDS_AT_MOST = 5
"""For a process to end after an interrupt, on a busy machine."""

# Products of two hundred different sizes, which IREE takes most of a minute for.
LONG = """
    import sys
    import torch
    from pelton import aot

    def program(x):
        for size in range(20, 220):
            x = torch.softmax(x @ torch.ones(size, size + 1), 1)
        return x

    rows = aot.NamedDimension("rows", 1, 64, 128)
    out = aot.export(program, args=[aot.InputInfo((rows, 20), torch.float32)])
    out.save_mlir(sys.argv[1])
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("interrupt") / "long.mlirbc"
    subprocess.run([sys.executable, "-c", textwrap.dedent(LONG), str(path)], check=True)
    return path


COMPILE = "from pelton import aot; import sys; aot.export(sys.argv[1]).compile(sys.argv[2])"
COMMANDS = {
    "library": [sys.executable, "-c", COMPILE],
    "command line": [sys.executable, "-m", "pelton.cli", "compile"],
}


def wait_for_compiler(child: subprocess.Popen[bytes]) -> list[int]:
    """Wait until the compiler works on the module; return the processes of the child."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = descendants(child.pid)
        commands = [Path(f"/proc/{pid}/cmdline") for pid in found]
        if any(b"module.mlirbc" in path.read_bytes() for path in commands if path.exists()):
            return found
        assert child.poll() is None, "the compile ended by itself"
        time.sleep(0.05)
    raise AssertionError("no compiler was started")


@pytest.mark.parametrize(
    ("command", "everyone"),
    [
        pytest.param("library", False, id="library, by a signal to its process"),
        pytest.param("command line", True, id="command line, from the terminal"),
    ],
)
def test_an_interrupted_compile_leaves_nothing(
    command: str, everyone: bool, module: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    target = tmp_path / "out" / "m.vmfb"
    target.parent.mkdir()
    options = ["-o", str(target)] if command == "command line" else [str(target)]
    child = subprocess.Popen(
        [*COMMANDS[command], str(module), *options],
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        started = wait_for_compiler(child)
        began = time.monotonic()
        (os.killpg if everyone else os.kill)(child.pid, signal.SIGINT)
        child.communicate(timeout=SECONDS_AT_MOST * 4)
    finally:
        child.kill()
        child.wait()
    assert time.monotonic() - began < SECONDS_AT_MOST
    assert child.returncode == (130 if command == "command line" else -signal.SIGINT)
    assert [pid for pid in started if alive(pid)] == []
    assert list(target.parent.iterdir()) == []
    assert [path.name for path in temporary.iterdir() if "cache" not in path.name] == []
