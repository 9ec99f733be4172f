"""Records of finished jobs: when one holds, and when the job is to be done again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pelton.cli.jobs.files import facts_of
from pelton.cli.jobs.matrix import CompileJob, ExportJob, Job
from pelton.cli.jobs.records import finished, forget, keep
from pelton.cli.jobs.work import Outcome, library_versions


@pytest.fixture
def job(tmp_path: Path) -> ExportJob:
    (tmp_path / "zoo.py").write_text("source")
    (tmp_path / "a.mlirbc").write_text("module")
    return ExportJob("a", tmp_path, tmp_path / "a.mlirbc", "zoo:f", ("2xf32",))


def done(job: Job, **changes: Any) -> Outcome:
    outcome = Outcome(
        seconds=1.5,
        notes=("said",),
        read=facts_of([job.folder / "zoo.py"]),
        wrote=facts_of(job.outputs),
        libraries=library_versions(["numpy"]),
    )
    return dataclasses.replace(outcome, **changes)


def record(job: Job) -> Path:
    return job.output.parent / ".jobs" / f"{job.name}.json"


def test_a_job_that_was_kept_is_finished_with_its_outcome(job: ExportJob) -> None:
    assert finished(job) is None
    keep(job, done(job))
    assert finished(job) == done(job)
    keep(job, done(job, seconds=2.0))
    assert [path.name for path in record(job).parent.iterdir()] == ["a.json"]
    found = finished(job)
    assert found is not None
    assert found.seconds == 2.0


def test_a_forgotten_job_is_not_finished(job: ExportJob) -> None:
    keep(job, done(job))
    forget(job)
    forget(job)
    assert finished(job) is None


def changed(path: Path) -> None:
    path.write_text("changed")


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: changed(folder / "zoo.py"),
        lambda folder: (folder / "zoo.py").unlink(),
        lambda folder: changed(folder / "a.mlirbc"),
        lambda folder: (folder / "a.mlirbc").unlink(),
    ],
    ids=["read", "no_read", "wrote", "no_wrote"],
)
def test_files_that_changed_make_a_job_again(
    job: ExportJob, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    keep(job, done(job))
    change(tmp_path)
    assert finished(job) is None


@pytest.mark.parametrize(
    "options",
    [{"inputs": ("3xf32",)}, {"strict": True}, {"function": "g"}, {"external_parameters": "model"}],
    ids=lambda options: next(iter(options)),
)
def test_other_options_make_a_job_again(job: ExportJob, options: dict[str, Any]) -> None:
    keep(job, done(job))
    assert finished(dataclasses.replace(job, **options)) is None


@pytest.mark.parametrize(
    "libraries", [{"numpy": "0"}, {"no-such-package": "1"}, {}], ids=["version", "gone", "none"]
)
def test_other_packages_make_a_job_again(job: ExportJob, libraries: dict[str, str]) -> None:
    keep(job, done(job, libraries=library_versions(()) | libraries))
    assert (finished(job) is None) is bool(libraries)


def test_a_record_that_lacks_a_result_is_none(job: ExportJob) -> None:
    keep(job, done(job, wrote={}))
    assert finished(job) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "null",
        lambda text: text.replace('"format": 1', '"format": 2'),
        lambda text: text.replace('"seconds": 1.5', '"seconds": "long"'),
        lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "format"}),
        lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "job"}),
        lambda text: json.dumps(json.loads(text) | {"more": 1}),
        lambda text: "\udcff".encode(errors="surrogateescape").decode("latin1"),
    ],
    ids=["empty", "cut", "list", "null", "format", "type", "no_format", "no_job", "more", "bytes"],
)
def test_a_damaged_record_is_no_record(job: ExportJob, damage: Callable[[str], str]) -> None:
    keep(job, done(job))
    text = record(job).read_text()
    changed_text = damage(text)
    assert changed_text != text
    record(job).write_text(changed_text)
    assert finished(job) is None


def test_a_compile_is_made_again_for_other_options_or_an_unknown_target(tmp_path: Path) -> None:
    (tmp_path / "zoo.py").write_text("")
    (tmp_path / "a.mlirbc").write_text("module")
    (tmp_path / "a.x.vmfb").write_text("artifact")
    job = CompileJob(
        "a", tmp_path, tmp_path / "a.x.vmfb", tmp_path / "a.mlirbc", "cpu",
        {"optimization_level": 2}, ("x",),
    )  # fmt: skip
    keep(job, done(job))
    assert finished(job) is not None
    assert "identity" in json.loads(record(job).read_text())["job"]
    assert finished(dataclasses.replace(job, options={"optimization_level": 3})) is None
    assert finished(dataclasses.replace(job, target="no-such")) is None
