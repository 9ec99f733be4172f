"""A benchmark session: one process for each runner, prepared one by one, timed in turns."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pelton.runtime.device.cpu import available_cpus
from pelton.runtime.progress import stage

from ..spec.errors import ExportError
from .job import Job
from .report import ABSENT, FAILED, MEASURED, Report, Row, compare
from .runners import absence, check_runner

_TURN_SECONDS = 0.1
"""How long one runner runs before the next has its turn."""

_REFERENCE = "eager"


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        seconds: How long each runner runs in all.
        threads: On how many processors.
        device: Where eager and inductor run: `cpu` or `cuda`.
        seed: Of weights and inputs.
    """

    seconds: float = 3.0
    threads: int = 1
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        here = available_cpus()
        if not 1 <= self.threads <= here:
            raise ExportError(f"threads must be 1 to {here} on this machine, got {self.threads}")
        if self.seconds <= 0:
            raise ExportError(f"seconds must be more than 0, got {self.seconds}")


def measure(
    command: Sequence[str],
    program: str,
    inputs: Sequence[str],
    runners: Sequence[str],
    settings: Settings | None = None,
) -> Report:
    """Measure a program by several runners, each in a process of its own.

    Eager is always among them: its results are those that others are compared with.

    Args:
        command: Starts a process that reads a `Job` on the first line of its input and serves it.
        program: What is measured, in the words of `command`.
        inputs: Its inputs likewise.
        runners: The runners, as `runner_names` has them.
        settings: How to measure.

    Raises:
        ExportError: A runner is unknown, or eager itself failed.
    """
    settings = settings or Settings()
    for runner in runners:
        check_runner(runner)
    ordered = list(dict.fromkeys([_REFERENCE, *runners]))
    with tempfile.TemporaryDirectory(prefix="pelton-bench-") as folder:
        with contextlib.ExitStack() as processes:
            rows, workers = [], {}
            for number, runner in enumerate(ordered):
                own = Path(folder, str(number))
                own.mkdir()
                job = Job(
                    program, tuple(inputs), runner, str(own),
                    settings.threads, settings.device, settings.seed,
                )  # fmt: skip
                row = Row(runner)
                rows.append(row)
                with stage(f"preparing {runner}"):
                    worker = _prepared(row, command, job)
                if worker is not None:
                    workers[runner] = processes.enter_context(worker)
            _check_reference(rows)
            with stage("measuring in turns"):
                _interleave(rows, workers, settings)
            _compare(rows, workers)
    stated = {**vars(settings), "turn_seconds": _TURN_SECONDS}
    return Report(program, inputs, stated, rows)


class _Process:
    """A process that serves a job."""

    def __init__(self, command: Sequence[str], job: Job) -> None:
        self._errors = Path(job.folder, "stderr.txt")
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(Path(job.folder, "inductor"))}
        with open(self._errors, "w") as errors:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True, env=environment,
            )  # fmt: skip
        self._send(job.to_json())

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the answer reports its end
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Have it do something; return its answer."""
        assert self._process.stdout is not None
        self._send(json.dumps({"do": do, **request}))
        line = self._process.stdout.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        said = self._errors.read_text(errors="replace").strip().splitlines()
        last = f": {said[-1][:300]}" if said else ""
        return {"error": f"the process ended (status {self._process.wait()}){last}"}


def _prepared(row: Row, command: Sequence[str], job: Job) -> _Process | None:
    """Start a runner's process and have it made ready; None where that is not possible."""
    reason = absence(row.runner, job.device)
    if reason is not None:
        row.status, row.reason = ABSENT, reason
        return None
    process = _Process(command, job)
    try:
        answer = process.ask("prepare")
    except BaseException:
        process.__exit__()
        raise
    if "error" in answer:
        row.status, row.reason = FAILED, answer["error"]
        process.__exit__()
        return None
    for name, value in answer.items():
        setattr(row, name, value)
    return process


def _check_reference(rows: Sequence[Row]) -> None:
    """Refuse to go on without eager; drop runners whose process made other weights."""
    reference = rows[0]
    if reference.status != MEASURED:
        raise ExportError(f"eager cannot run the program: {reference.reason}")
    for row in rows[1:]:
        if row.status == MEASURED and row.weights != reference.weights:
            raise ExportError(
                "the program got other weights in another process; make them by torch's random "
                "numbers, which are seeded, or load them from a file"
            )


def _interleave(rows: Sequence[Row], workers: dict[str, _Process], settings: Settings) -> None:
    """Time the runners in turns until each ran for the time that was asked for.

    The order moves on by one each round, so that none always follows the same other one.
    """
    turns = max(1, round(settings.seconds / _TURN_SECONDS))
    seconds = settings.seconds / turns
    processor: dict[str, list[float]] = {runner: [] for runner in workers}
    running = [row for row in rows if row.runner in workers]
    for turn in range(turns):
        first = turn % len(running)
        for row in [*running[first:], *running[:first]]:
            if row.status != MEASURED:
                continue
            answer = workers[row.runner].ask("turn", seconds=seconds)
            if "error" in answer:
                row.status, row.reason = FAILED, answer["error"]
                continue
            row.milliseconds += [time / 1e6 for time in answer["nanoseconds"]]
            processor[row.runner].append(answer["processor_nanoseconds"] / 1e6)
    for row in running:
        if processor[row.runner]:
            row.processor_milliseconds = statistics.median(processor[row.runner])


def _compare(rows: Sequence[Row], workers: dict[str, _Process]) -> None:
    """Compare the results of each runner with those of eager."""
    expected: list[np.ndarray[Any, Any]] | None = None
    for row in rows:
        if row.status != MEASURED:
            continue
        answer = workers[row.runner].ask("results")
        if "error" in answer:
            row.status, row.reason = FAILED, answer["error"]
            continue
        with np.load(answer["file"], allow_pickle=False) as arrays:
            found = [arrays[name] for name in arrays.files]
        if row is rows[0]:
            expected = found
        if expected is not None:  # else eager failed since, and there is nothing to compare with
            row.difference, row.is_right = compare(found, expected)
