"""The process of a benchmark job: prepares one runner and measures on request.

It reads a line for each thing to do and answers each with one line of JSON, so that the process
that asks can let several of them take turns. Between turns it sleeps.
"""

from __future__ import annotations

import json
import os
import resource
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pelton.runtime.device.devices import set_thread_count

from ..compat import pytrees
from .job import Job, Subject
from .runners import Prepared, prepare

_LEAST_CALLS = 3
"""How many calls each turn times at least."""

_WARM_UP_SHARE = 0.2
"""How much of a turn's time its warm-up takes, before it."""


def serve(job: Job, load: Callable[[], Subject], asked: TextIO, answers: TextIO) -> None:
    """Do what the lines of `asked` say, until they end.

    Args:
        job: What to run, and how.
        load: Makes the program and its arguments; called once, when threads and seeds are set.
        asked: One JSON object on each line: `{"do": "prepare"}`, `{"do": "turn", "seconds": s}`,
            `{"do": "results"}`.
        answers: Gets one JSON object for each; one that failed has `error`.
    """
    worker = _Worker(job, load)
    actions: dict[str, Callable[..., dict[str, Any]]] = {
        "prepare": worker.prepare,
        "turn": worker.turn,
        "results": worker.results,
    }
    for line in asked:
        request = json.loads(line)
        try:
            answer = actions[request.pop("do")](**request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}
        print(json.dumps(answer), file=answers, flush=True)


class _Worker:
    """The state of a process between two lines."""

    def __init__(self, job: Job, load: Callable[[], Subject]) -> None:
        self._job = job
        self._load = load
        self._prepared: Prepared | None = None

    def prepare(self) -> dict[str, Any]:
        """Make the program ready; return its cold start and its memory."""
        limit_threads(self._job.threads)
        torch.manual_seed(self._job.seed)
        subject = self._load()
        before = _status_bytes("VmRSS")
        _forget_peak()
        self._prepared = prepare(self._job, subject)
        artifact = self._prepared.artifact
        return {
            "seconds": self._prepared.seconds,
            "artifact_bytes": artifact.stat().st_size if artifact else None,
            "peak_bytes": max(_status_bytes("VmHWM") - before, 0),
            "compiler_peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
            "resident_bytes": max(_status_bytes("VmRSS") - before, 0),
            "weights": _checksum(subject.program),
            "notes": self._prepared.notes,
        }

    def turn(self, seconds: float) -> dict[str, Any]:
        """Time calls for about `seconds`, after a warm-up; return the times in nanoseconds."""
        call = self._call
        warm = time.perf_counter() + seconds * _WARM_UP_SHARE
        call()
        while time.perf_counter() < warm:
            call()
        times: list[int] = []
        processor = time.process_time_ns()
        end = time.perf_counter_ns() + int(seconds * 1e9)
        start = time.perf_counter_ns()
        while len(times) < _LEAST_CALLS or start < end:
            call()
            now = time.perf_counter_ns()
            times.append(now - start)
            start = now
        processor = time.process_time_ns() - processor
        return {"nanoseconds": times, "processor_nanoseconds": processor // len(times)}

    def results(self) -> dict[str, Any]:
        """Call once more and save the results; return the file."""
        leaves = pytrees.tree_leaves(self._call())
        path = Path(self._job.folder, "results.npz")
        np.savez(path, *(_numbers(leaf) for leaf in leaves if leaf is not None))
        return {"file": str(path)}

    @property
    def _call(self) -> Callable[[], Any]:
        assert self._prepared is not None, "asked to run what was not prepared"
        return self._prepared.call


def limit_threads(count: int) -> None:
    """Let this process use as many processors, each with one thread of a library.

    Args:
        count: Their number; there must be as many.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    torch.set_num_threads(count)
    set_thread_count(count)


def _numbers(leaf: Any) -> NDArray[Any]:
    """Return a result as numbers that numpy can compare, without loss."""
    if not isinstance(leaf, torch.Tensor):
        return np.asarray(leaf)
    tensor = leaf.detach().cpu()
    if tensor.dtype.is_floating_point:
        tensor = tensor.double()
    array: NDArray[Any] = tensor.resolve_conj().numpy()
    return array


def _checksum(program: Any) -> int:
    """Return the CRC-32 of the weights of a module; 0 of what has none."""
    crc = 0
    if isinstance(program, nn.Module):
        for tensor in program.state_dict().values():
            if not isinstance(tensor, torch.Tensor):  # the extra state of a module
                continue
            data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            crc = zlib.crc32(data.numpy().data, crc)
    return crc


def _status_bytes(field: str) -> int:
    """Return a row of this process's status in bytes; 0 where the system does not tell."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _forget_peak() -> None:
    """Let the peak of the memory start from what is used now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass  # then the peak is that since the process began
