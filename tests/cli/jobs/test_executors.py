"""The pool of processes on this machine: answers, workers that die, and the end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from pelton.cli.jobs.executors import LocalExecutor, WorkerLost
from pelton.cli.jobs.matrix import Job


class Told(Job):
    """A job that is a call in the worker when it arrives there: torch is not needed for that."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = (function, args)

    def __reduce__(self) -> Any:
        return self.call


WRONG = Told(str, "no job")
"""What `perform` answers with an error."""


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    found = LocalExecutor(1)
    yield found
    found.close()


def test_a_worker_that_dies_takes_only_its_job(executor: LocalExecutor) -> None:
    dies = Told(exec, "import os; os.kill(os.getpid(), 9)")
    futures = [executor.submit(job) for job in (dies, WRONG, Told(os._exit, 3))]
    with pytest.raises(WorkerLost, match="its process ended with signal 9"):
        futures[0].result()
    error = futures[1].result().error
    assert error is not None
    assert error.startswith("AttributeError: ")
    with pytest.raises(WorkerLost, match="its process ended with status 3"):
        futures[2].result()
    assert len(executor._workers) == 2  # the second did two jobs


def test_the_end_interrupts_what_runs_and_what_waits_never_starts(tmp_path: Path) -> None:
    executor = LocalExecutor(1)
    told = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))"
    running = executor.submit(Told(exec, f"{told}; time.sleep(60)"))
    waiting = executor.submit(WRONG)
    deadline = time.monotonic() + 30
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    worker = int((tmp_path / "pid").read_text())
    start = time.monotonic()
    executor.close()
    assert time.monotonic() - start < 5
    with pytest.raises(WorkerLost):
        running.result()
    with pytest.raises(CancelledError):
        waiting.result()
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_nothing_is_started_where_nothing_was_submitted() -> None:
    executor = LocalExecutor(3)
    executor.close()
    assert executor._workers == []
    with pytest.raises(RuntimeError):
        executor.submit(Job("m", Path(), Path()))
