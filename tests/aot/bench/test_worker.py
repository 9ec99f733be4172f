"""The process of a benchmark job: its answers, its times, its results and its checksums."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pelton.aot.bench import worker
from pelton.aot.bench.job import Job, Subject
from pelton.aot.bench.worker import (
    _checksum,
    _numbers,
    _status_bytes,
    limit_threads,
    serve,
)


@pytest.fixture(autouse=True)
def processors(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put back on which processors this process runs, and with how many threads.

    IREE's threads are left: they can only be set before a program is loaded, which another test
    of this process may have done.
    """
    allowed, threads = os.sched_getaffinity(0), torch.get_num_threads()
    monkeypatch.setattr(worker, "set_thread_count", lambda count: None)
    yield
    os.sched_setaffinity(0, allowed)
    torch.set_num_threads(threads)


def answers(folder: Path, program: Any, *asked: dict[str, Any], x: Any = None) -> list[Any]:
    job = Job("zoo:net", (), "eager", str(folder), seed=3)
    arguments = (torch.ones(2),) if x is None else (x,)
    told = io.StringIO()
    lines = io.StringIO("".join(json.dumps(request) + "\n" for request in asked))
    serve(job, lambda: Subject(program, arguments, {}, job.seed), lines, told)
    return [json.loads(line) for line in told.getvalue().splitlines()]


def test_a_job_is_prepared_timed_and_its_results_are_saved(tmp_path: Path) -> None:
    calls: list[Any] = []

    def program(x: torch.Tensor) -> Any:
        calls.append(x)
        return {"a": x * 2, "b": [None, 7, x.to(torch.bfloat16)]}

    prepare, turn, results = answers(
        tmp_path, program, {"do": "prepare"}, {"do": "turn", "seconds": 0.0}, {"do": "results"}
    )
    assert prepare["weights"] == 0
    assert prepare["artifact_bytes"] is None
    assert "first call" in prepare["seconds"]
    assert len(turn["nanoseconds"]) == 3
    assert all(time > 0 for time in turn["nanoseconds"])
    with np.load(results["file"]) as saved:
        found = [saved[name] for name in saved.files]
    assert [f.tolist() for f in found] == [[2.0, 2.0], 7, [1.0, 1.0]]
    assert [f.dtype.name for f in found] == ["float64", "int64", "float64"]
    assert Path(results["file"]).parent == tmp_path


def test_a_turn_lasts_as_long_as_was_asked(tmp_path: Path) -> None:
    _, turn = answers(tmp_path, lambda x: x, {"do": "prepare"}, {"do": "turn", "seconds": 0.02})
    assert sum(turn["nanoseconds"]) >= 0.019e9


def test_errors_are_answers_in_one_line_and_end_nothing(tmp_path: Path) -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("first\n  second")

    found = answers(tmp_path, fails, {"do": "results"}, {"do": "prepare"}, {"do": "no such"})
    assert [sorted(answer) for answer in found] == [["error"]] * 3
    assert found[0]["error"] == "AssertionError: asked to run what was not prepared"
    assert found[1]["error"] == "ValueError: first second"
    assert found[2]["error"] == "KeyError: 'no such'"


def test_nothing_asked_is_nothing_answered(tmp_path: Path) -> None:
    assert answers(tmp_path, lambda x: x) == []


def test_the_seed_is_set_before_the_program_is_made(tmp_path: Path) -> None:
    drawn: list[float] = []
    job = Job("zoo:net", (), "eager", str(tmp_path), seed=3)

    def load() -> Subject:
        drawn.append(torch.rand(()).item())
        return Subject(lambda x: x, (torch.ones(1),), {})

    serve(job, load, io.StringIO('{"do": "prepare"}'), io.StringIO())
    torch.manual_seed(3)
    assert drawn == [torch.rand(()).item()]


def test_threads_are_limited_to_as_many_processors() -> None:
    limit_threads(1)
    assert torch.get_num_threads() == 1
    assert len(os.sched_getaffinity(0)) == 1


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        (torch.tensor([1.5], dtype=torch.float16), np.array([1.5])),
        (torch.tensor([2**62 + 1]), np.array([2**62 + 1])),
        (torch.tensor([True]), np.array([True])),
        (torch.tensor([1 + 2j]).conj(), np.array([1 - 2j], np.complex64)),
        (torch.zeros(0, 3, requires_grad=True), np.zeros((0, 3))),
        (2.5, np.array(2.5)),
    ],
    ids=["half", "integer", "bool", "complex", "empty", "number"],
)
def test_results_are_saved_without_loss(leaf: Any, expected: Any) -> None:
    found = _numbers(leaf)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert np.array_equal(found, expected)


class Extra(nn.Linear):
    """A module with state that is no tensor, and a buffer of other kinds."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.register_buffer("flag", torch.tensor([True, False]))
        self.register_buffer("empty", torch.zeros(0))
        self.register_buffer("turned", torch.arange(6.0).reshape(2, 3).T)

    def get_extra_state(self) -> Any:
        return {"version": 1}

    def set_extra_state(self, state: Any) -> None: ...


def test_equal_weights_have_one_checksum_and_others_another() -> None:
    torch.manual_seed(0)
    one = Extra()
    torch.manual_seed(0)
    same, other = Extra(), Extra()
    assert _checksum(one) == _checksum(same) != _checksum(other)
    same.flag[0] = False
    assert _checksum(one) != _checksum(same)
    assert _checksum(lambda x: x) == _checksum(nn.ReLU()) == 0


def test_the_memory_of_this_process_is_told_in_bytes() -> None:
    assert _status_bytes("VmRSS") > 1 << 20
    assert _status_bytes("NoSuchRow") == 0
