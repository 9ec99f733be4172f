"""Records of finished jobs: one JSON file each, beside their results."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pelton.runtime.checked import Decoder
from pelton.runtime.files import atomic_write

from .files import all_hold
from .matrix import CompileJob, Job
from .work import Outcome, library_versions

FORMAT = 1
"""Version of the records; one of another version is no record. 1: the first."""

_FOLDER = ".jobs"

_SUCCESS = {"error": None, "transient": False, "detail": ""}
"""The fields of an outcome that a record leaves out: there is one of jobs that succeeded only."""


def finished(job: Job) -> Outcome | None:
    """Return how a job went when it was done before, if doing it again would give the same.

    That is so where the job, all files that it read, the packages it used, and for a compile the
    compiler, the target and the processor are what they were, and its results are still there.
    """
    try:
        record = json.loads(_path(job).read_bytes())
        if record.pop("format") != FORMAT or record.pop("job") != _description(job):
            return None
        outcome = Decoder().decode(Outcome, {**_SUCCESS, **record}, "record")
        libraries = outcome.libraries
        if set(outcome.wrote) != {str(path) for path in job.outputs}:
            return None
        if library_versions([name for name in libraries if name != "Python"]) != libraries:
            return None
        return outcome if all_hold(outcome.read) and all_hold(outcome.wrote) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # no record, or a damaged one


def keep(job: Job, outcome: Outcome) -> None:
    """Write the record of a finished job.

    Raises:
        ArtifactError: It cannot be written.
    """
    record = {
        "format": FORMAT,
        "job": _description(job),
        "read": {path: asdict(facts) for path, facts in outcome.read.items()},
        "wrote": {path: asdict(facts) for path, facts in outcome.wrote.items()},
        "libraries": outcome.libraries or library_versions(()),
        "seconds": outcome.seconds,
        "notes": outcome.notes,
    }
    path = _path(job)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(json.dumps(record, indent=1, sort_keys=True).encode())


def forget(job: Job) -> None:
    """Remove the record of a job, which is to be done again."""
    _path(job).unlink(missing_ok=True)


def _path(job: Job) -> Path:
    return job.output.parent / _FOLDER / f"{job.name}.json"


def _description(job: Job) -> Any:
    """Return all that decides a job's results beside files and packages, as JSON reads it back."""
    described = {"kind": type(job).__name__, **asdict(job)}
    if isinstance(job, CompileJob):
        described["identity"] = _identity(job)
    return json.loads(json.dumps(described, default=str))


def _identity(job: CompileJob) -> Any:
    from pelton.aot.targets.request import Storage, compile_request

    chosen = compile_request(job.target, job.options, Storage(cache_dir=None))
    return {"target": chosen.target.name, **chosen.target.identity(chosen.options)}
