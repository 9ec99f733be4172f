"""Modules of programs: entry points, pruned signatures, state and devices."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.capture.programs.fx_programs import FxPrograms
from pelton.aot.ir.builder import ModuleBuilder
from pelton.aot.ir.module import new_module, operations_within
from pelton.aot.lowering.program_module import (
    assemble,
    export_programs,
    module_of_callable,
    module_of_program,
    trace_callable,
    warn_of_training,
)

X = torch.ones(2, 3)
INFO = aot.InputInfo((2, 3), torch.float32)


class Count(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x + self.count


def test_a_callable_is_the_entry_point_main() -> None:
    found = module_of_callable(lambda x: x + 1, (X,))
    assert [*found.signatures] == ["main"]
    assert [*found.eager] == ["main"]
    assert torch.equal(found.eager["main"]([X]), X + 1)


def test_a_program_of_torch_has_no_eager_form() -> None:
    found = module_of_program(torch.export.export(torch.nn.ReLU(), (X,)))
    assert [*found.signatures] == ["main"] and found.eager == {}


@pytest.mark.parametrize("pure", [False, True])
def test_constants_leave_the_signature_of_a_pure_function(pure: bool) -> None:
    traced = trace_callable(lambda x, y: x + y, (INFO, X), {}, name="f", pure=pure)
    names = [parameter.name for parameter in traced.signature.parameters]
    assert names == (["x"] if pure else ["x", "y"])
    assert traced.signature.name == "f"


def test_state_is_named_in_the_signature_with_accessors() -> None:
    found = module_of_callable(Count(), (X,))
    assert found.signatures["main"].mutates == ("count",)
    names = {
        f.attributes["sym_name"].value for f in operations_within(found.module_op, "func.func")
    }
    assert names == {"main", "pelton.state.get.count", "pelton.state.set.count"}


def test_profiles_are_stated() -> None:
    traced = trace_callable(lambda x: x + 1, (X,), {}, {"x": {0: aot.NamedDimension("n", 1, 2, 8)}})
    builder = ModuleBuilder(new_module("m"))
    found = assemble(builder, traced, None, None, [{"n": 1}, {"n": (2, 4, 8)}])
    assert [p.bounds for p in found.signatures["main"].profiles] == [
        {"n": (1, 1, 1)}, {"n": (2, 4, 8)},
    ]  # fmt: skip


def test_no_programs_are_refused() -> None:
    with pytest.raises(aot.ExportError, match="there are no programs to export"):
        export_programs(ModuleBuilder(new_module("m")), FxPrograms(), None, None)


@pytest.mark.parametrize(
    "module, warned",
    [
        (torch.nn.Dropout(0.5), True),
        (torch.nn.Sequential(torch.nn.BatchNorm1d(3)), True),
        (torch.nn.Dropout(0.5).eval(), False),
        (torch.nn.Linear(3, 3), False),
        (lambda x: x, False),
    ],
    ids=["dropout", "batch_norm", "dropout_in_eval", "linear", "function"],
)
def test_layers_in_training_mode_are_named(
    module: Any, warned: bool, recwarn: pytest.WarningsRecorder
) -> None:
    warn_of_training(module)
    assert len(recwarn) == warned
    if warned:
        assert "exporting in training mode" in str(recwarn[0].message)
