"""Executors of jobs: the protocol, and the pool of processes on this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Protocol

from .matrix import Job
from .work import Outcome, perform

_STOP_SECONDS = 10.0
"""How long a worker that was interrupted may take to remove what it has half-written."""


class Executor(Protocol):
    """Runs jobs in other processes, several at a time."""

    def submit(self, job: Job) -> Future[Outcome]:
        """Start a job; the future's exception says that its worker was lost."""

    def close(self) -> None:
        """End all workers, and interrupt what still runs."""


class WorkerLost(Exception):
    """A worker ended without an answer: it crashed, or was killed for want of memory."""


class LocalExecutor:
    """Workers on this machine, each a process that does one job after another.

    A worker that dies takes nothing with it but its job.

    Args:
        count: How many there are; a process is started when it is first needed.
    """

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="pelton-job")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, job: Job) -> Future[Outcome]:
        """Start a job as soon as a worker is free."""
        return self._threads.submit(self._run, job)

    def close(self) -> None:
        """End all workers, and interrupt what still runs."""
        with self._lock:
            self._closed = True
            workers = list(self._workers)
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.interrupt()
        for worker in workers:
            worker.join()
        self._threads.shutdown()

    def _run(self, job: Job) -> Outcome:
        worker = self._worker()
        outcome = worker.perform(job)
        self._idle.put(worker)
        return outcome

    def _worker(self) -> _Worker:
        with contextlib.suppress(Empty):
            return self._idle.get_nowait()
        with self._lock:
            if self._closed:
                raise WorkerLost("the build was ended")
            worker = _Worker()
            self._workers.append(worker)
            return worker


class _Worker:
    """A process that does jobs, and this process's end of the pipe to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def perform(self, job: Job) -> Outcome:
        try:
            self._pipe.send(job)
            outcome = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode or 0
            how = f"signal {-code}" if code < 0 else f"status {code}"
            raise WorkerLost(f"its process ended with {how}") from None
        assert isinstance(outcome, Outcome)
        return outcome

    def interrupt(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._process.is_alive() and self._process.pid is not None:
                os.kill(self._process.pid, signal.SIGINT)

    def join(self) -> None:
        self._process.join(_STOP_SECONDS)
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection[Outcome, Job]) -> None:
    """Do the jobs that come through a pipe until it is closed or the process is interrupted."""
    os.setpgrp()  # what is typed at the terminal goes to the parent alone, which passes it on
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            pipe.send(perform(pipe.recv()))
