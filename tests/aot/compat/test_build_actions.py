"""Contract of the actions of `iree.build`."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from iree.build.executor import ActionConcurrency, Executor, ProgressReporter

from pelton.aot.compat.build_actions import RemotableAction
from tests.contracts import contract


class Noted(RemotableAction):
    def __init__(self, executor: Executor) -> None:
        concurrency = ActionConcurrency.THREAD
        super().__init__(desc="noted", executor=executor, concurrency=concurrency)
        self.runs: list[str] = []

    def remotable_thunk(self) -> Callable[[], None]:
        return lambda: self.runs.append("run")


@contract("iree.build.executor.BuildAction._remotable_thunk", breaks="turbine_generate")
def test_action_runs_what_the_public_method_returns(tmp_path: Path) -> None:
    action = Noted(Executor(tmp_path, io.StringIO(), ProgressReporter()))
    action.invoke(None)
    assert action.failure is None
    assert action.runs == ["run"]
