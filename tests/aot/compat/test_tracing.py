"""Contracts of torch's tracer: where it takes stack traces from."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.compat.tracing import stack_traces_of
from tests.contracts import contract

LINE = '  File "model.py", line 3, in forward\n'


class Double(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def noted() -> str | None:
    graph = torch.export.export(Double(), (torch.ones(2),)).graph
    (found,) = [node.stack_trace for node in graph.nodes if node.op == "call_function"]
    return found


@contract(
    "torch.fx.proxy.CapturedTraceback, TracerBase._filter_traceback_frames",
    breaks="the user's lines in errors and MLIR locations",
)
def test_tracer_notes_the_lines_that_it_is_given() -> None:
    with stack_traces_of(lambda: [LINE]):
        assert noted() == LINE.strip()
    assert "model.py" not in (noted() or ""), "torch's own traces come back after the block"


@contract("torch.fx.proxy.CapturedTraceback", breaks="the user's traces after a failed export")
def test_own_traces_come_back_after_an_error() -> None:
    before = torch.fx.proxy.CapturedTraceback
    with pytest.raises(ZeroDivisionError), stack_traces_of(lambda: [LINE]):
        raise ZeroDivisionError
    assert torch.fx.proxy.CapturedTraceback is before
