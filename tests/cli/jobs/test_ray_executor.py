"""The Ray executor with a stand-in for Ray, whose start takes long: its use, and its end."""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pelton.cli.jobs.matrix import Job
from pelton.cli.jobs.ray_executor import RayExecutor
from pelton.cli.jobs.work import Outcome, perform
from pelton.runtime.errors import DeviceError, MissingDependencyError

JOB = Job("m", Path(), Path())


class Reference:
    def __init__(self) -> None:
        self.given: Future[Outcome] = Future()

    def future(self) -> Future[Outcome]:
        return self.given


class Ray(ModuleType):
    """Notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.calls: list[Any] = []
        self.references: list[Reference] = []
        self.fails: Exception | None = None

    def init(self, address: str, **options: Any) -> None:
        self.calls.append(("init", address, options))
        if self.fails is not None:
            raise self.fails

    def remote(self, **options: Any) -> Any:
        return lambda function: self.calls.append(("remote", function, options)) or Task(self)

    def cancel(self, reference: Reference) -> None:
        self.calls.append(("cancel", self.references.index(reference)))
        if self.fails is not None:
            raise self.fails

    def shutdown(self) -> None:
        self.calls.append("shutdown")


class Task:
    def __init__(self, ray: Ray) -> None:
        self._ray = ray

    def remote(self, job: Job) -> Reference:
        self._ray.references.append(Reference())
        return self._ray.references[-1]


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    found = Ray()
    monkeypatch.setitem(sys.modules, "ray", found)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")
    return found


def test_a_ray_of_this_machine_has_as_many_processors_and_no_retries(ray: Ray) -> None:
    RayExecutor(3)
    (_, address, options), (_, function, remote) = ray.calls
    assert (address, options["num_cpus"], options["log_to_driver"]) == ("local", 3, False)
    assert options["_node_ip_address"] == "127.0.0.1"
    assert (function, remote) == (perform, {"max_retries": 0, "num_cpus": 1})


def test_a_cluster_is_taken_as_it_is(ray: Ray) -> None:
    RayExecutor(3, "ray://host:1")
    _, address, options = ray.calls[0]
    assert address == "ray://host:1"
    assert sorted(options) == ["log_to_driver", "logging_level"]


@pytest.mark.parametrize("error", [ConnectionError, ValueError, RuntimeError])
def test_a_cluster_that_is_not_there_is_told(ray: Ray, error: type[Exception]) -> None:
    ray.fails = error("refused")
    with pytest.raises(DeviceError, match="cannot reach Ray at host:1: refused"):
        RayExecutor(1, "host:1")


@pytest.mark.parametrize("fails", [False, True])
def test_the_end_interrupts_only_what_runs(ray: Ray, fails: bool) -> None:
    executor = RayExecutor(1)
    futures = [executor.submit(JOB) for _ in range(3)]
    ray.references[0].given.set_result(Outcome())
    ray.references[2].given.set_exception(RuntimeError("lost"))
    ray.calls.clear()
    ray.fails = RuntimeError("Ray has ended") if fails else None
    executor.close()
    assert ray.calls == [("cancel", 1), "shutdown"]
    assert futures[0].result() == Outcome()


def test_without_ray_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pelton\[ray\]'"):
        RayExecutor(1)
    assert os.environ.pop("RAY_USAGE_STATS_ENABLED") == "0"
