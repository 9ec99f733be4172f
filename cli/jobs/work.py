"""What a worker does: one job, from its description to files and a report. It never raises."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import random
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pelton.runtime.errors import ArtifactError, CompileError, PeltonError

from ..export import export_program
from ..inputs import parse_input
from ..terminal import is_internal
from .files import FileFacts, ReadFiles, facts_of
from .matrix import CompileJob, ExportJob, Job


@dataclass(frozen=True)
class Outcome:
    """How a job went.

    Attributes:
        error: What went wrong, in one line; None: nothing.
        transient: Whether another attempt may go better.
        detail: The traceback, and what a compiler said.
        seconds: How long it took.
        notes: What the user should know.
        read: The files that it depends on.
        wrote: The files that it made.
        libraries: The versions of the packages that were loaded.
    """

    error: str | None = None
    transient: bool = False
    detail: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    read: dict[str, FileFacts] = field(default_factory=dict)
    wrote: dict[str, FileFacts] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)


def perform(job: Job) -> Outcome:
    """Do a job in this process, which is a worker's: it is changed for good.

    The folder of the job file becomes the current one. Random numbers start from the same seed, and
    torch uses one thread, so that a job gives the same bytes wherever and after whatever it runs.
    """
    start = time.perf_counter()
    notes: list[str] = []
    try:
        with _noted(notes), contextlib.redirect_stdout(sys.stderr):
            _settle(job.folder)
            if isinstance(job, ExportJob):
                read = _export(job)
            else:
                assert isinstance(job, CompileJob)
                read = _compile(job)
        return Outcome(
            seconds=time.perf_counter() - start,
            notes=tuple(notes),
            read=read,
            wrote=facts_of(job.outputs),
            libraries=_libraries() if isinstance(job, ExportJob) else {},
        )
    except (Exception, SystemExit) as error:
        return Outcome(
            error=_line(error),
            transient=is_transient(error),
            detail=_detail(error),
            seconds=time.perf_counter() - start,
            notes=tuple(notes),
        )


def _settle(folder: Path) -> None:
    import torch

    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    os.chdir(folder)
    torch.set_num_threads(1)
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@functools.cache
def _read_files() -> ReadFiles:
    return ReadFiles()


def _export(job: ExportJob) -> dict[str, FileFacts]:
    stated = [job.folder / name for name in job.depends]
    missing = [str(path) for path in stated if not path.is_file()]
    if missing:
        raise ArtifactError(f"depends names what is no file: {', '.join(missing)}")
    with _read_files().watching():
        exported = export_program(
            job.program,
            [parse_input(text) for text in job.inputs],
            module_name=job.module_name,
            function_name=job.function,
            strict_export=job.strict,
            external_parameters=job.external_parameters or None,
        )
    job.output.parent.mkdir(parents=True, exist_ok=True)
    if job.archive is not None:
        exported.save_parameters(job.archive)
    exported.save_mlir(job.output)
    return _read_files().facts(stated)


def _compile(job: CompileJob) -> dict[str, FileFacts]:
    from pelton.aot import export

    read = facts_of([job.module])
    export(job.module).compile(job.output, target=job.target, **job.options)
    return read


def library_versions(names: Sequence[str]) -> dict[str, str]:
    """Return the versions of Python and of the packages that are installed, by name."""
    found = {"Python": platform.python_version()}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _libraries() -> dict[str, str]:
    by_module = importlib.metadata.packages_distributions()
    loaded = {name.partition(".")[0] for name in list(sys.modules)}
    names = {package for module in loaded for package in by_module.get(module, ())}
    return library_versions(sorted(names))


@contextlib.contextmanager
def _noted(notes: list[str]) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            yield
        finally:
            for warning in caught:
                if not is_internal(warning.category, warning.filename):
                    notes.append(" ".join(str(warning.message).split()))


# Errors

_LASTING = (
    FileNotFoundError,
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
_KILLED = "the compiler crashed (signal 9)"
"""How a compile ends where the system ran out of memory."""


def is_transient(error: BaseException) -> bool:
    """Return whether another attempt may go better: memory, disks and networks, not programs.

    Example:
        >>> is_transient(TimeoutError("no answer")), is_transient(ValueError("no such layer"))
        (True, False)
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, CompileError) and _KILLED in cause.diagnostics:
            return True
        if isinstance(cause, (OSError, MemoryError)) and not isinstance(cause, _LASTING):
            return True
        cause = cause.__cause__
    return False


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, (PeltonError, OSError)) else f"{type(error).__name__}: {text}"


def _detail(error: BaseException) -> str:
    said = error.diagnostics if isinstance(error, CompileError) else ""
    return "".join(traceback.format_exception(error)) + said
