"""The order of jobs, with an executor that does as it is told."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from pelton.cli.jobs import records
from pelton.cli.jobs.files import facts_of
from pelton.cli.jobs.matrix import CompileJob, ExportJob, Job
from pelton.cli.jobs.schedule import Result, Schedule, Status
from pelton.cli.jobs.work import Outcome

Script = dict[str, list["Outcome | Exception"]]
FULL = Outcome(error="[Errno 28] No space left on device", transient=True)
WRONG = Outcome(error="no such layer")


class Scripted:
    """Answers with scripted outcomes; a job without a script writes its files."""

    def __init__(self, script: Script, change: Callable[[Job], None] = lambda job: None) -> None:
        self.script = script
        self.change = change
        self.started: list[str] = []

    def submit(self, job: Job) -> Future[Outcome]:
        self.started.append(job.name)
        future: Future[Outcome] = Future()
        scripted = self.script.get(job.name)
        answer = scripted.pop(0) if scripted else self._write(job)
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future

    def _write(self, job: Job) -> Outcome:
        for path in job.outputs:
            path.write_text(f"results of {job.name}")
        self.change(job)
        read = [job.module] if isinstance(job, CompileJob) else [job.folder / "zoo.py"]
        return Outcome(read=facts_of(read), wrote=facts_of(job.outputs))

    def close(self) -> None: ...


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    """Two models, the first one compiled in two ways."""
    (tmp_path / "zoo.py").write_text("")
    exports = [ExportJob(name, tmp_path, tmp_path / f"{name}.mlirbc", "zoo:f") for name in "ab"]
    compiles = [
        CompileJob(
            "a", tmp_path, tmp_path / f"a.{label}.vmfb", exports[0].output, "cpu", {}, (label,)
        )
        for label in ("x", "y")
    ]
    return [exports[0], *compiles, exports[1]]


def run(
    jobs: list[Job], script: Script | None = None, **options: object
) -> tuple[list[Result], list[str]]:
    executor = Scripted(script or {})
    results = Schedule(executor, 2, **options).run(jobs)  # type: ignore[arg-type]
    return results, executor.started


def statuses(results: list[Result]) -> list[str]:
    return [f"{result.job.name} {result.status.value}" for result in results]


def test_compiles_run_after_their_export(jobs: list[Job]) -> None:
    results, started = run(jobs)
    assert statuses(results) == ["a done", "a.x done", "a.y done", "b done"]
    assert started.index("a") < started.index("a.x")


def test_an_error_stops_only_what_needs_the_result(jobs: list[Job]) -> None:
    results, started = run(jobs, {"a": [WRONG]})
    assert statuses(results) == ["a failed", "a.x not run", "a.y not run", "b done"]
    assert started == ["a", "b"]
    assert results[0].outcome.error == "no such layer"


def test_what_may_pass_is_tried_again(jobs: list[Job]) -> None:
    results, _ = run(jobs, {"a": [FULL], "b": [RuntimeError("killed")]})
    assert statuses(results) == ["a done", "a.x done", "a.y done", "b done"]
    assert [result.attempts for result in results] == [2, 1, 1, 2]


@pytest.mark.parametrize("retries", [0, 2])
def test_attempts_have_an_end(jobs: list[Job], retries: int) -> None:
    lost: list[Outcome | Exception] = [RuntimeError("status\n7")] * 9
    results, _ = run(jobs, {"b": lost}, retries=retries)
    assert (results[-1].status, results[-1].attempts) == (Status.FAILED, retries + 1)
    assert results[-1].outcome.error == "the worker was lost: status 7"


def test_finished_jobs_are_not_run_again(jobs: list[Job]) -> None:
    run(jobs)
    results, started = run(jobs)
    assert started == []
    assert {result.status for result in results} == {Status.SKIPPED}
    assert run(jobs, force=True)[1] == ["a", "b", "a.x", "a.y"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("zoo.py", "changed", ["a", "b"]),  # the exports give what they gave: no compile
        ("a.x.vmfb", None, ["a.x"]),
        ("a.x.vmfb", "changed", ["a.x"]),
        ("a.mlirbc", "changed", ["a"]),
        (".jobs/a.x.json", "{", ["a.x"]),
        (".jobs/a.x.json", None, ["a.x"]),
        (".jobs/a.x.json", '{"format": 0}', ["a.x"]),
    ],
)
def test_what_changed_is_made_again(
    jobs: list[Job], tmp_path: Path, name: str, content: str | None, expected: list[str]
) -> None:
    run(jobs)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_text(content)
    assert run(jobs)[1] == expected


def test_other_options_or_packages_make_a_job_again(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(jobs)
    first = jobs[1]
    assert isinstance(first, CompileJob) and records.finished(first) is not None
    assert records.finished(CompileJob(**{**vars(first), "options": {"isolate": True}})) is None
    monkeypatch.setattr(records, "library_versions", lambda names: {"Python": "4.0"})
    assert records.finished(first) is None


def test_a_failure_is_no_finished_job(jobs: list[Job]) -> None:
    run(jobs)
    run(jobs, {"a.x": [WRONG]}, force=True)
    assert run(jobs)[1] == ["a.x"]


def test_files_that_are_on_another_machine_only_are_an_error(jobs: list[Job]) -> None:
    executor = Scripted({}, change=lambda job: job.output.unlink())
    (result,) = Schedule(executor, 1).run(jobs[-1:])
    assert result.status is Status.FAILED
    assert "b.mlirbc was written on another machine" in str(result.outcome.error)


def test_no_more_jobs_run_than_allowed(jobs: list[Job]) -> None:
    most = 0

    class Counting(Scripted):
        def submit(self, job: Job) -> Future[Outcome]:
            nonlocal most
            most = max(most, 1 + sum(1 for f in pending if not f.done()))
            future = super().submit(job)
            pending.append(future)
            return future

    pending: list[Future[Outcome]] = []
    told: list[Result] = []
    results = Schedule(Counting({}), 1, tell=told.append).run(jobs)
    assert most == 1
    assert sorted(statuses(told)) == sorted(statuses(results))
