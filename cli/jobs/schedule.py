"""The schedule: jobs in the order of their dependencies, with retries; finished ones skipped."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from . import records
from .executors import Executor
from .matrix import Job
from .work import Outcome


class Status(enum.Enum):
    """How a job ended."""

    DONE = "done"
    SKIPPED = "up to date"
    FAILED = "failed"
    BLOCKED = "not run"


@dataclass(frozen=True)
class Result:
    """A job and how it ended.

    Attributes:
        job: The job.
        status: How it ended.
        outcome: The report of the last attempt, or of the run that made what is there.
        attempts: How often it ran.
    """

    job: Job
    status: Status
    outcome: Outcome = field(default_factory=Outcome)
    attempts: int = 0

    @property
    def ok(self) -> bool:
        """Whether the job's files are there."""
        return self.status in (Status.DONE, Status.SKIPPED)


class Schedule:
    """Runs jobs; an error of one stops only those that need its results.

    Args:
        executor: Where they run.
        limit: How many run at a time.
        retries: How often a job is run again whose worker was lost, or that failed for want of
            memory, a disk or a network.
        force: Whether to run those too that are up to date.
        tell: Called with each result as it comes.
    """

    def __init__(
        self,
        executor: Executor,
        limit: int,
        *,
        retries: int = 1,
        force: bool = False,
        tell: Callable[[Result], None] = lambda result: None,
    ) -> None:
        self._executor = executor
        self._limit = limit
        self._retries = retries
        self._force = force
        self._tell = tell
        self._running: dict[Future[Outcome], _Attempt] = {}
        self._results: dict[str, Result] = {}

    def run(self, jobs: Sequence[Job]) -> list[Result]:
        """Run jobs.

        Args:
            jobs: Each after the one that it needs.

        Returns:
            The results, in the order of the jobs.
        """
        waiting = [_Attempt(job) for job in jobs]
        while waiting or self._running:
            waiting = [attempt for attempt in waiting if not self._advanced(attempt)]
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                again = self._collect(self._running.pop(future), future)
                waiting = [again, *waiting] if again is not None else waiting
        return [self._results[job.name] for job in jobs]

    def _advanced(self, attempt: _Attempt) -> bool:
        """Start a job or find that it need not run; False: it has to wait."""
        job = attempt.job
        if job.needs is not None:
            before = self._results.get(job.needs)
            if before is None:
                return False
            if not before.ok:
                reason = f"{job.needs!r} {before.status.value}"
                self._finish(Result(job, Status.BLOCKED, Outcome(error=reason)))
                return True
        if len(self._running) >= self._limit:
            return False
        if attempt.number == 1 and not self._force:
            outcome = records.finished(job)
            if outcome is not None:
                self._finish(Result(job, Status.SKIPPED, outcome))
                return True
        records.forget(job)
        self._running[self._executor.submit(job)] = attempt
        return True

    def _collect(self, attempt: _Attempt, future: Future[Outcome]) -> _Attempt | None:
        """Take the outcome of an attempt; returns another one where that may help."""
        try:
            outcome = _checked(attempt.job, future.result())
        except Exception as error:  # of the executor: the work itself reports its errors
            text = " ".join(str(error).split())
            outcome = Outcome(error=f"the worker was lost: {text}", transient=True)
        if outcome.error is None:
            records.keep(attempt.job, outcome)
        elif outcome.transient and attempt.number <= self._retries:
            return _Attempt(attempt.job, attempt.number + 1)
        status = Status.DONE if outcome.error is None else Status.FAILED
        self._finish(Result(attempt.job, status, outcome, attempt.number))
        return None

    def _finish(self, result: Result) -> None:
        self._results[result.job.name] = result
        self._tell(result)


@dataclass(frozen=True)
class _Attempt:
    """A job, and the how-manieth time it runs."""

    job: Job
    number: int = 1


def _checked(job: Job, outcome: Outcome) -> Outcome:
    """Return an outcome, as a failure if the files that it names are not on this machine."""
    if outcome.error is not None:
        return outcome
    for path in job.outputs:
        facts = outcome.wrote.get(str(path))
        if facts is None or not path.is_file() or path.stat().st_size != facts.size_bytes:
            return Outcome(
                error=f"{path} was written on another machine and is not on this one; "
                "put the folder where all machines find it under the same path"
            )
    return outcome
