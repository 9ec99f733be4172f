"""`explain` says what torch.compile makes of a program."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pelton import aot
from pelton.aot.dynamo import explain


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        y = self.linear(x).view(-1) * scale
        print("between")
        return torch.linalg.eigvals(y.view(-1, 2, 2)).abs()


def test_graphs_breaks_operators_sizes_and_guards_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    x = torch.randn(6, 4)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    found = explain(Net(), x)
    first_line = Net.forward.__code__.co_firstlineno
    assert len(found.graphs) == 2
    (cut,) = found.breaks
    assert "print" in cut.explanation
    assert (cut.location.file, cut.location.line) == (__file__, first_line + 2)
    first, second = found.graphs
    assert first.sizes == ("x.shape[0]: 2 or more",)
    assert first.refusals == {}
    names = {operator.name: operator for operator in (*first.operators, *second.operators)}
    assert names["aten.addmm.default"].taken == {"cpu, cuda": "whole", "tensorrt": "whole"}
    assert names["aten.addmm.default"].count == 1
    unknown = names["aten.linalg_eig.default"]
    assert unknown.taken == {"cpu, cuda": "missing", "tensorrt": "missing"}
    assert unknown.location.line == first_line + 3
    assert "linalg_eig" in second.refusals["cpu, cuda"]
    assert "2 <= x.shape[0]" in found.guards.sizes
    assert "scale == 2.0" in found.guards.values
    assert {"x", "self.linear.weight"} <= set(found.guards.tensors)


def test_a_program_that_cannot_run_is_an_error() -> None:
    with pytest.raises(aot.ExportError, match="cannot be run"):
        explain(nn.Linear(3, 3), torch.ones(2, 5))
