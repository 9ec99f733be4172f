"""The work of a job: its files, its notes, and errors that are told and never raised."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pelton.cli.jobs.matrix import CompileJob, ExportJob, Job
from pelton.cli.jobs.work import Outcome, is_transient, library_versions, perform
from pelton.runtime.errors import ArtifactError, CompileError

MODELS = """
import random
import sys
import warnings
import numpy
import torch

print("imported")

def make():
    warnings.warn("old\\n  weights", UserWarning)
    warnings.warn("old function", DeprecationWarning)
    open("weights.txt").read()
    layer = torch.nn.Linear(2, 2)
    layer.bias.data[0] = random.random() + numpy.random.rand()
    return layer

def ends():
    sys.exit("enough")

def interrupts():
    raise KeyboardInterrupt

def full():
    try:
        raise OSError(28, "No space left on device")
    except OSError as error:
        raise RuntimeError("cannot cache") from error
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with models; what a worker changes of its process is put back."""
    before = os.getcwd(), list(sys.path), torch.get_num_threads()
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    (tmp_path / "work_models.py").write_text(MODELS)
    (tmp_path / "weights.txt").write_text("1")
    yield tmp_path
    os.chdir(before[0])
    sys.path[:] = before[1]
    torch.set_num_threads(before[2])
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
    sys.modules.pop("work_models", None)


def export_job(folder: Path, program: str = "make", **options: Any) -> ExportJob:
    inputs = ("1x2xf32",) if program == "make" else ()
    output = folder / "out" / "m.mlirbc"
    return ExportJob("m", folder, output, f"work_models:{program}", inputs, **options)


def test_an_export_writes_its_files_and_tells_what_it_read(folder: Path, capsys: Any) -> None:
    job = export_job(folder, external_parameters=True)
    outcome = perform(job)
    assert outcome.error is None
    assert set(outcome.wrote) == {str(path) for path in job.outputs}
    assert all(path.stat().st_size for path in job.outputs)
    names = {Path(path).name for path in outcome.read}
    assert {"work_models.py", "weights.txt"} <= names
    assert outcome.notes == ("old weights",)
    assert {"Python", "torch", "numpy"} <= set(outcome.libraries)
    assert (outcome.transient, outcome.detail) == (False, "")
    assert outcome.seconds > 0
    out, err = capsys.readouterr()
    assert (out, "imported" in err) == ("", True)


def test_a_job_gives_the_same_bytes_after_others(folder: Path) -> None:
    job = export_job(folder, external_parameters=True)
    contents = []
    for _ in range(2):
        assert perform(job).error is None
        contents.append([path.read_bytes() for path in job.outputs])
        torch.rand(3)
        random.random()
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("job", "error", "transient"),
    [
        ({"program": "none"}, "work_models", False),
        ({"program": "ends"}, "enough", False),
        ({"program": "full"}, "cannot cache", True),
        ({"depends": ("weights.txt", "a.txt", "b.txt")}, "depends names what is no file: ", False),
    ],
    ids=["missing", "exit", "full", "depends"],
)
def test_what_goes_wrong_is_told_in_one_line(
    folder: Path, job: dict[str, Any], error: str, transient: bool
) -> None:
    outcome = perform(export_job(folder, **job))
    assert outcome.error is not None
    assert error in outcome.error
    assert "\n" not in outcome.error
    assert outcome.transient is transient
    assert outcome.detail.startswith("Traceback")
    assert (outcome.read, outcome.wrote) == ({}, {})
    assert not (folder / "out").exists()


def test_an_interrupt_ends_the_worker(folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        perform(export_job(folder, "interrupts"))


def test_a_compile_of_what_is_no_module_is_told(folder: Path) -> None:
    (folder / "m.mlir").write_text("no module")
    job = CompileJob("m", folder, folder / "m.vmfb", folder / "m.mlir", "cpu", {}, ("cpu",))
    outcome = perform(job)
    assert outcome.error is not None
    assert "m.mlir" in outcome.error
    assert not job.output.exists()


def test_a_job_of_no_kind_is_an_error(folder: Path) -> None:
    outcome = perform(Job("m", folder, folder / "m"))
    assert outcome.error is not None
    assert isinstance(outcome, Outcome)


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (OSError(28, "No space left on device"), True),
        (MemoryError(), True),
        (ConnectionResetError(), True),
        (FileNotFoundError(2, "no such file"), False),
        (PermissionError(), False),
        (RuntimeError("CUDA error"), False),
        (caused(ArtifactError("cannot write"), OSError(28, "full")), True),
        (caused(ArtifactError("cannot write"), NotADirectoryError()), False),
        (caused(RuntimeError("a"), caused(RuntimeError("b"), MemoryError())), True),
        (CompileError("failed", diagnostics="the compiler crashed (signal 9)"), True),
        (CompileError("failed", diagnostics="the compiler crashed (signal 11)"), False),
    ],
    ids=[
        "full", "memory", "network", "missing", "denied", "program", "caused", "caused_lasting",
        "chain", "killed", "crashed",
    ],
)  # fmt: skip
def test_memory_disks_and_networks_may_go_better(error: BaseException, transient: bool) -> None:
    assert is_transient(error) is transient


def test_versions_are_those_of_what_is_installed() -> None:
    found = library_versions(["numpy", "no-such-package"])
    assert list(found) == ["Python", "numpy"]
    assert found["numpy"] == np.__version__
    assert found["Python"] == ".".join(map(str, sys.version_info[:3]))
