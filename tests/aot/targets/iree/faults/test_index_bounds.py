"""Indices out of range raise, and nothing beside a buffer is read or written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pelton import aot, runtime
from pelton.aot.targets.iree.faults.index_bounds import bound_indices
from tests.programs import check_text

X, PLACES = torch.arange(20.0).reshape(5, 4), torch.tensor([0, 2])


@pytest.mark.parametrize("sizes", ["static", "dynamic"])
def test_hostile_indices_are_refused_where_eager_refuses_them(sizes: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.aot.hostile_indices", sizes],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[5],
        timeout=300,
    )
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_the_error_names_the_operator_the_dimension_and_the_line() -> None:
    def program(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x.index_select(1, i)

    executable = runtime.load(bytes(aot.export(program, args=(X, PLACES)).compile().map_memory()))
    with pytest.raises(IndexError) as raised:
        executable(X, torch.tensor([0, 4]))
    line = program.__code__.co_firstlineno + 1
    assert str(raised.value) == (
        "main(): index out of range in index_select: an index is out of range for dimension 1 of "
        f"size 4 (at {__file__}:{line})"
    )
    assert executable(X, torch.tensor([3, 0])).tolist() == X[:, [3, 0]].tolist()


def test_a_failed_call_leaves_the_state_that_it_would_set() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
            self.total += x[i].sum(0)
            return self.total

    executable = runtime.load(bytes(aot.export(Counter(), args=(X, PLACES)).compile().map_memory()))
    executable(X, PLACES)
    with pytest.raises(aot.IndexOutOfRangeError):
        executable(X, torch.tensor([7, 7]))
    assert executable.state["total"].tolist() == X[PLACES].sum(0).tolist()


def _bounded(output: aot.ExportOutput) -> str:
    module_op = output.mlir_module.operation.clone()
    bound_indices(module_op)
    assert module_op.verify()
    return str(module_op)


def test_an_index_is_wrapped_clamped_and_checked_once_at_the_end() -> None:
    output = aot.export(lambda x, i: (x[i], x.index_put((i,), x[:2])), args=(X, PLACES))
    check_text(
        _bounded(output),
        """
        CHECK: %[[NEGATIVE:.+]] = torch.aten.lt.Scalar %arg1
        CHECK: %[[FROM_END:.+]] = torch.aten.add.Scalar %arg1
        CHECK: %[[PLACE:.+]] = torch.aten.where.self %[[NEGATIVE]], %[[FROM_END]], %arg1
        CHECK: %[[SAFE:.+]] = torch.aten.clamp %[[PLACE]]
        CHECK: torch.aten.ne.Tensor %[[PLACE]], %[[SAFE]]
        CHECK: torch.prim.ListConstruct %[[SAFE]]
        CHECK: torch.aten.index.Tensor
        CHECK: torch.prim.ListConstruct %[[SAFE]]
        CHECK: torch.aten.index_put
        CHECK: torch.aten.Int.Tensor
        CHECK: torch.runtime.assert %{{.+}}, "index out of range in index: an index is out of range
        CHECK-NEXT: return
        """,
    )


KNOWN = {
    "arange": lambda x, i: x[torch.arange(5)],
    "places of the greatest": lambda x, i: x.gather(1, x.argmax(1, keepdim=True)),
    "clamped": lambda x, i: x[i.clamp(0, 4)],
    "modulo": lambda x, i: x[i % 5],
    "bytes": lambda x, i: torch.zeros(256)[i.to(torch.uint8).long()],
}


@pytest.mark.parametrize("name", KNOWN)
def test_indices_that_are_known_to_be_in_range_cost_nothing(name: str) -> None:
    assert "torch.runtime.assert" not in _bounded(aot.export(KNOWN[name], args=(X, PLACES)))
