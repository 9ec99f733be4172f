"""Run code in a process of its own: for what may crash, and for what happens at exit."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run_child(code: str, *arguments: object, timeout_s: float = 60) -> str:
    """Run `code` with `arguments` as `sys.argv[1:]`; return what it prints, checked to succeed."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert not done.stderr, done.stderr
    return done.stdout
