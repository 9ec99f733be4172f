"""Calls and loads leave nothing behind; measured in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED_BYTES = 2 << 20


def run(code: str, *arguments: object) -> list[int]:
    """Run code in a child; return the numbers that it prints."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


CALLS = """
    import sys
    import numpy as np
    from pelton import runtime
    from tests.load.processes import resident_bytes, settle

    executable = runtime.load(sys.argv[1])
    inputs = [np.ones((rows, 8), np.float32) for rows in (1, 3, 16, 64)]

    def call(count):
        for number in range(count):
            executable(inputs[number % 4])
        settle()

    call(3000)
    before = resident_bytes()
    call(int(sys.argv[2]))
    print(resident_bytes() - before)
"""


@pytest.mark.parametrize(
    "calls",
    [pytest.param(10_000, id="few"), pytest.param(200_000, id="many", marks=pytest.mark.load)],
)
def test_calls_keep_no_memory(net: Path, calls: int) -> None:
    (growth,) = run(CALLS, net, calls)
    assert growth < ALLOWED_BYTES


LOADS = """
    import sys
    import numpy as np
    from pelton import runtime
    from tests.load.processes import mapped_files, open_files, resident_bytes, settle, threads

    x = np.ones((3, 8), np.float32)

    def load(count):
        for _ in range(count):
            executable = runtime.load(sys.argv[1])
            executable(x)
            del executable
        settle()
        return resident_bytes(), open_files(), threads(), mapped_files()

    before = load(20)
    after = load(int(sys.argv[2]))
    print(*(now - then for now, then in zip(after, before)))
"""


@pytest.mark.parametrize(
    "loads", [pytest.param(50, id="few"), pytest.param(500, id="many", marks=pytest.mark.load)]
)
def test_loads_that_are_dropped_leave_nothing(net: Path, loads: int) -> None:
    growth, files, threads, mapped = run(LOADS, net, loads)
    assert growth < ALLOWED_BYTES
    assert (files, threads, mapped) == (0, 0, 0)
