"""Whole builds: by processes, by Ray, interrupted, and gone on with."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import runtime
from pelton.cli import main

from ..processes import Mark

ZOO = '''
import os, time
from pathlib import Path

import torch
from torch import nn


def meet(own, other):
    """End only when the other model is made at the same time, by another process."""
    Path(own).touch()
    end = time.monotonic() + 120
    while not Path(other).exists():
        assert time.monotonic() < end, "nobody came"
        time.sleep(0.01)


def mlp():
    print("making an mlp")
    meet("mlp.made", "conv.made")
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).eval()


def conv():
    meet("conv.made", "mlp.made")
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)).eval()


def scaled():
    factor = float(open("factor.txt").read())
    return lambda x: x * factor


def bad():
    raise RuntimeError("no weights")


def crashes():
    os._exit(7)


def sleeps():
    open("sleeping", "w").close()
    time.sleep(60)
'''

JOBS = """
[models.mlp]
program = "zoo:mlp"
inputs = ["b=1..8x8xf32"]
external_parameters = true
options = ["quick"]

[models.conv]
program = "zoo:conv"
inputs = ["2x3x8x8xf32"]
options = ["best"]

[models.bad]
program = "zoo:bad"

[targets.cpu]

[options.quick]
optimization_level = 1

[options.best]
optimization_level = 3
"""

PELTON = [sys.executable, "-m", "pelton.cli", "build"]
STATUSES = {
    "mlp": "done", "mlp.cpu.quick": "done", "conv": "done",
    "conv.cpu.best": "done", "bad": "failed", "bad.cpu.quick": "not run", "bad.cpu.best": "not run",
}  # fmt: skip


def write(folder: Path, jobs: str) -> Path:
    (folder / "zoo.py").write_text(ZOO)
    (folder / "jobs.toml").write_text(jobs)
    return folder / "jobs.toml"


def parse(text: str) -> dict[str, dict[str, Any]]:
    return {result["job"]: result for result in json.loads(text)}


def statuses(results: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: result["result"] for name, result in results.items()}


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.iterdir() if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    write(folder, JOBS)
    return folder


@pytest.fixture(scope="module")
def local(folder: Path) -> subprocess.CompletedProcess[str]:
    """A build by two processes."""
    command = [*PELTON, str(folder / "jobs.toml"), "--jobs", "2", "--json"]
    return subprocess.run(command, capture_output=True, text=True)


def test_one_error_stops_no_other_job(local: subprocess.CompletedProcess[str]) -> None:
    assert local.returncode == 1
    results = parse(local.stdout)
    assert statuses(results) == STATUSES
    assert results["bad.cpu.best"]["error"] == "'bad' failed"
    (line,) = [line for line in local.stderr.splitlines() if line.startswith("pelton: error: ")]
    assert line.startswith("pelton: error: bad: bad() failed: RuntimeError: no weights (at /")
    assert "making an mlp" in local.stderr


@pytest.mark.parametrize("batch", [1, 5, 8])
def test_artifacts_equal_eager(
    local: subprocess.CompletedProcess[str], folder: Path, batch: int
) -> None:
    torch.manual_seed(0)
    eager = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).eval()
    x = torch.randn(batch, 8)
    out = folder / "out"
    executable = runtime.load(out / "mlp.cpu.quick.vmfb", parameters=out / "mlp.irpa")
    torch.testing.assert_close(executable(x), eager(x), rtol=1e-4, atol=1e-5)


def test_the_table_shows_all_jobs_and_what_is_up_to_date(
    local: subprocess.CompletedProcess[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "jobs.toml").read_text().replace('[models.bad]\nprogram = "zoo:bad"\n', "")
    (folder / "good.toml").write_text(text)
    before = {path: path.stat().st_mtime_ns for path in (folder / "out").iterdir()}
    assert main(["build", str(folder / "good.toml")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "up to date" in line]
    assert [row[:3] for row in rows] == [
        ["mlp", "(export)", "up"],
        ["mlp", "cpu", "quick"],
        ["conv", "(export)", "up"],
        ["conv", "cpu", "best"],
    ]
    assert {path: path.stat().st_mtime_ns for path in (folder / "out").iterdir()} == before


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_ray_gives_the_same_bytes_and_leaves_no_process(
    local: subprocess.CompletedProcess[str], folder: Path
) -> None:
    mark = Mark()
    options = ["--executor", "ray", "--jobs", "2", "--output", "out_ray", "--json"]
    done = subprocess.run(
        [*PELTON, "jobs.toml", *options],
        capture_output=True,
        text=True,
        cwd=folder,
        env=mark.environment,
    )
    assert done.returncode == 1, done.stderr
    results = parse(done.stdout)
    assert statuses(results) == STATUSES
    assert "bad() failed: RuntimeError: no weights (at /" in results["bad"]["error"]
    assert contents(folder / "out_ray") == contents(folder / "out")
    assert len(contents(folder / "out")) == 5
    mark.assert_gone()


def test_a_changed_file_makes_its_model_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs = write(
        tmp_path, '[models.scaled]\nprogram = "zoo:scaled"\ninputs = ["2xf32"]\n[targets.cpu]'
    )
    x = torch.tensor([1.0, -3.0])
    for factor in (2, 5):
        (tmp_path / "factor.txt").write_text(str(factor))
        assert main(["build", str(jobs), "--json", "--jobs", "1"]) == 0
        results = parse(capfd.readouterr().out)
        assert statuses(results) == {"scaled": "done", "scaled.cpu": "done"}
        assert torch.equal(runtime.load(tmp_path / "out" / "scaled.cpu.vmfb")(x), factor * x)


def test_a_job_whose_process_dies_is_tried_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs = write(tmp_path, '[models.crashes]\nprogram = "zoo:crashes"')
    assert main(["build", str(jobs), "--json", "--jobs", "1"]) == 1
    result = parse(capfd.readouterr().out)["crashes"]
    assert (result["result"], result["attempts"]) == ("failed", 2)
    assert result["error"] == "the worker was lost: its process ended with status 7"


def test_an_interrupt_leaves_no_process_and_no_half_written_file(tmp_path: Path) -> None:
    jobs = write(tmp_path, '[models.sleeps]\nprogram = "zoo:sleeps"')
    mark = Mark()
    with subprocess.Popen(
        [*PELTON, str(jobs)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=mark.environment
    ) as child:
        while not (tmp_path / "sleeping").exists() and child.poll() is None:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=60)
    assert (child.returncode, said) == (130, (b"", b""))
    mark.assert_gone()
    assert [path for path in tmp_path.rglob("*") if path.suffix == ".part"] == []


@pytest.mark.parametrize(
    "arguments", [["--jobs", "0"], ["--executor", "slurm"], ["--retries", "-1"]]
)
def test_wrong_usage_has_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["build", "jobs.toml", *arguments])
    assert "error:" in capsys.readouterr().err


def test_a_wrong_job_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs.toml").write_text("[models.net]")
    assert main(["build", str(tmp_path / "jobs.toml")]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "[models.net] program: expected 'module:name'" in error
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.toml"]


def test_ray_is_told_to_be_missing_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    jobs = write(tmp_path, '[models.mlp]\nprogram = "zoo:mlp"')
    assert main(["build", str(jobs), "--executor", "ray"]) == 1
    assert "pip install 'pelton[ray]'" in capsys.readouterr().err
