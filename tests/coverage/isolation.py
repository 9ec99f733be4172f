"""Running a case in a child process, so that a crash, a hang or a leak is a result like others."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass

MEMORY_BYTES = 24 << 30


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        status: `ok`, `wrong` (numbers differ), `refused` (an error of ours names the reason),
            `failed` (any other error), `crash`, `timeout`, or `unmeasured`.
        stage: How far it got: `eager`, `export`, `compile`, `run` or `compare`.
        reason: Why, in words.
    """

    status: str
    stage: str = ""
    reason: str = ""


def in_child(case: Callable[[], Outcome], timeout_s: float) -> Outcome:
    """Run a case in a forked child and return its outcome.

    Args:
        case: What to run. The parent must not have started threads of torch or of a compiler.
        timeout_s: When to kill the child.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_and_exit(case, writing)
    os.close(writing)
    text = _read_all(reading, time.monotonic() + timeout_s)
    os.close(reading)
    if text is None:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if text is None:
        return Outcome("timeout", "", f"longer than {timeout_s:.0f} s")
    if not text:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return Outcome("crash", "", f"the process ended by signal {number}")
    return Outcome(**json.loads(text))


def _run_and_exit(case: Callable[[], Outcome], writing: int) -> None:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        outcome = case()
    except BaseException as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        outcome = Outcome("failed", "", f"{type(error).__name__} at {where}: {error}"[:400])
    os.write(writing, json.dumps(asdict(outcome)).encode())
    os._exit(0)


def _read_all(reading: int, deadline: float) -> str | None:
    """Return what the child wrote until it closed the pipe, or None at the deadline."""
    data = b""
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        piece = os.read(reading, 1 << 16)
        if not piece:
            return data.decode()
        data += piece
