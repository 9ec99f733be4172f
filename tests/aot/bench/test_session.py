"""Sessions of a benchmark: processes that answer, fail and die, and what is told of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pelton.aot.bench import Report, Settings
from pelton.aot.bench.job import Job
from pelton.aot.bench.report import Row
from pelton.aot.bench.session import _interleave, _Process, measure
from pelton.aot.spec.errors import ExportError

WORKER = """
import json, sys
job = json.loads(sys.stdin.readline())
log = open(sys.argv[1], "a")
value = {"eager": 1.0, "cpu": 1.0, "inductor": 2.0}[job["runner"]]
for line in sys.stdin:
    do = json.loads(line)["do"]
    log.write(job["runner"] + " " + do + "\\n"); log.flush()
    answer = {}
    if do == "prepare":
        answer = {"seconds": {"compile": 0.5}, "weights": 5, "notes": ["said"]}
    if do == "turn":
        answer = {"nanoseconds": [2000000, 4000000], "processor_nanoseconds": 3000000}
    if do == "results":
        import numpy
        answer = {"file": job["folder"] + "/r.npz"}
        numpy.savez(answer["file"], numpy.array([value]))
    %s
    print(json.dumps(answer), flush=True)
"""


class Worker:
    """Processes that do as `WORKER` does, or as is added to it."""

    def __init__(self, folder: Path, added: str = "") -> None:
        self.log = folder / "log.txt"
        script = folder / "worker.py"
        script.write_text(WORKER % added)
        self.command = [sys.executable, str(script), str(self.log)]

    def measure(self, *runners: str, seconds: float = 0.2) -> Report:
        return measure(self.command, "zoo:net", ["2xf32"], runners, Settings(seconds=seconds))

    def asked(self) -> list[str]:
        return self.log.read_text().splitlines()


def rows(report: Report) -> dict[str, Row]:
    return {row.runner: row for row in report.rows}


def test_runners_take_turns_and_are_compared_with_eager(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    report = worker.measure("cpu", "inductor", "cpu")
    assert list(rows(report)) == ["eager", "cpu", "inductor"]
    assert worker.asked() == [
        "eager prepare", "cpu prepare", "inductor prepare",
        "eager turn", "cpu turn", "inductor turn",
        "cpu turn", "inductor turn", "eager turn",
        "eager results", "cpu results", "inductor results",
    ]  # fmt: skip
    cpu = rows(report)["cpu"]
    assert cpu.milliseconds == [2.0, 4.0, 2.0, 4.0]
    assert (cpu.processor_milliseconds, cpu.seconds, cpu.notes) == (3.0, {"compile": 0.5}, ["said"])
    assert (cpu.difference, cpu.is_right) == (0.0, True)
    assert (rows(report)["inductor"].difference, rows(report)["inductor"].is_right) == (1.0, False)
    assert (report.program, report.inputs) == ("zoo:net", ["2xf32"])


def test_eager_is_measured_though_nobody_asked(tmp_path: Path) -> None:
    assert list(rows(Worker(tmp_path).measure(seconds=0.01))) == ["eager"]


def test_a_runner_that_fails_is_told_and_left_out(tmp_path: Path) -> None:
    worker = Worker(tmp_path, 'if (job["runner"], do) == ("cpu", "turn"): answer = {"error": "E"}')
    cpu = rows(worker.measure("cpu"))["cpu"]
    assert (cpu.status, cpu.reason, cpu.milliseconds) == ("failed", "E", [])
    assert (cpu.processor_milliseconds, cpu.difference) == (None, None)
    assert worker.asked().count("cpu turn") == 1
    assert "cpu results" not in worker.asked()


@pytest.mark.parametrize("do", ["prepare", "turn", "results"])
def test_a_process_that_dies_is_told_with_its_last_words(tmp_path: Path, do: str) -> None:
    dies = "print('first\\nlast', file=sys.stderr); sys.exit(3)"
    added = f'if (job["runner"], do) == ("cpu", "{do}"): {dies}'
    cpu = rows(Worker(tmp_path, added).measure("cpu"))["cpu"]
    assert (cpu.status, cpu.reason) == ("failed", "the process ended (status 3): last")


def test_a_process_that_cannot_start_its_job_is_told(tmp_path: Path) -> None:
    job = Job("zoo:net", (), "cpu", str(tmp_path))
    with _Process([sys.executable, "-c", ""], job) as process:
        assert process.ask("prepare") == {"error": "the process ended (status 0)"}


def test_without_eager_there_is_no_report(tmp_path: Path) -> None:
    worker = Worker(tmp_path, 'if job["runner"] == "eager": answer = {"error": "no such net"}')
    with pytest.raises(ExportError, match="eager cannot run the program: no such net"):
        worker.measure("cpu")


def test_other_weights_than_those_of_eager_are_refused(tmp_path: Path) -> None:
    worker = Worker(tmp_path, 'if (job["runner"], do) == ("cpu", "prepare"): answer["weights"] = 6')
    with pytest.raises(ExportError, match="got other weights in another process"):
        worker.measure("cpu")


@pytest.mark.parametrize("do", ["turn", "results"])
def test_results_are_not_compared_where_eager_failed_since(tmp_path: Path, do: str) -> None:
    added = f'if (job["runner"], do) == ("eager", "{do}"): answer = {{"error": "E"}}'
    found = rows(Worker(tmp_path, added).measure("cpu", "inductor"))
    assert found["eager"].status == "failed"
    for runner in ("cpu", "inductor"):
        assert (found[runner].status, found[runner].difference) == ("measured", None)
        assert found[runner].is_right is None


def test_an_unknown_runner_is_refused_before_any_process(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    with pytest.raises(ExportError, match="unknown target"):
        worker.measure("cpu", "no-such")
    assert not worker.log.exists()


@pytest.mark.parametrize(("seconds", "turns"), [(0.01, 1), (0.1, 1), (0.34, 3)])
def test_the_time_is_shared_by_the_turns(seconds: float, turns: int) -> None:
    class Asked:
        def __init__(self) -> None:
            self.seconds: list[float] = []

        def ask(self, do: str, seconds: float) -> dict[str, Any]:
            self.seconds.append(seconds)
            return {"nanoseconds": [1], "processor_nanoseconds": 1}

    worker: Any = Asked()
    _interleave([Row("eager")], {"eager": worker}, Settings(seconds=seconds))
    assert len(worker.seconds) == turns
    assert np.isclose(sum(worker.seconds), seconds)


def test_impossible_settings_are_refused() -> None:
    for threads in (0, 100_000):
        with pytest.raises(ExportError, match=f"threads must be 1 to .* got {threads}"):
            Settings(threads=threads)
    for seconds in (0, -1.0):
        with pytest.raises(ExportError, match="seconds must be more than 0"):
            Settings(seconds=seconds)
