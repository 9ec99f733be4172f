"""Parts of a program on their own: flat graphs, values within them, and their modules."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
import torch
from torch.fx import Node

from pelton.aot.ir.exported import ExportedModule
from pelton.aot.raising.fx import Raised
from pelton.aot.spec.errors import ExportError, PeltonError
from pelton.aot.targets.iree.target import IreeTarget
from pelton.aot.verify.reexported import (
    compiled_values,
    eager_program,
    flat_program,
    part_of,
    tensor_nodes,
    with_outputs,
)
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import Parameter, ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import Dim

ROWS = TensorSpec(DTYPES["float32"], ("rows", 2))


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x.sum(0))
        return torch.relu(x + self.total)


def signature(*leaves: object) -> Signature:
    parameters = [Parameter(f"x{i}", "POSITIONAL_OR_KEYWORD", i) for i in range(len(leaves))]
    return Signature("main", tuple(parameters), tuple(leaves), 0, (ROWS,), (Dim("rows", 1, 8, 3),))  # type: ignore[arg-type]


def counted() -> tuple[Counter, Raised]:
    counter = Counter()
    return counter, flat_program(eager_program(counter, SIGNATURE, {"rows": 3}), SIGNATURE)


SIGNATURE = Signature(
    "main", (Parameter("x", "POSITIONAL_OR_KEYWORD", 0),), (ROWS,), 0, (ROWS,), (Dim("rows", 1, 8),)
)


def test_a_flat_graph_takes_what_the_signature_says_and_leaves_the_users_state() -> None:
    counter, program = counted()
    (port,) = program.inputs
    assert (port.name, port.kind, port.dtype, port.shape) == (
        "x", "user", torch.float32, ("rows", 2),
    )  # fmt: skip
    for rows in (1, 3, 5):
        program.graph_module(torch.ones(rows, 2))
    assert counter.total.tolist() == [0, 0]


def test_values_are_those_at_the_time_they_are_made() -> None:
    counter, program = counted()
    x = torch.tensor([[1.0, -9.0], [2.0, 3.0]])
    found = {str(node.target): value for node, value in tensor_nodes(program, [x])}
    assert found["aten.relu.default"].tolist() == [[4, 0], [5, 0]]
    assert counter.total.tolist() == [0, 0]
    again = {str(node.target): value for node, value in tensor_nodes(program, [x])}
    assert all(torch.equal(again[name], value) for name, value in found.items())


def named(program: Raised, target: str) -> Node:
    return next(n for n in program.graph_module.graph.nodes if str(n.target) == target)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x)).mul(2)


@functools.cache
def net() -> tuple[Net, Raised]:
    torch.manual_seed(0)
    model = Net().eval()
    return model, flat_program(eager_program(model, SIGNATURE, {"rows": 3}), SIGNATURE)


def test_values_within_a_graph_become_its_results_in_the_order_asked_for() -> None:
    model, program = net()
    nodes = [named(program, "aten.relu.default"), named(program, "aten.linear.default")]
    part = with_outputs(program, nodes)
    x = torch.randn(5, 2)
    relu, linear = part.graph_module(x)
    assert torch.equal(linear, model.layer(x))
    assert torch.equal(relu, linear.relu())
    assert len([*program.graph_module.graph.nodes]) == len([*net()[1].graph_module.graph.nodes])
    assert with_outputs(program, []).graph_module(x) == ()


def build(module: ExportedModule, path: Path) -> None:
    cpu = IreeTarget("cpu", backend="llvm-cpu")
    cpu.build(module, path, cpu.options({}))


def test_a_part_is_compiled_and_gives_its_values(tmp_path: Path) -> None:
    model, program = net()
    out = part_of(program, [named(program, "aten.relu.default")])

    x = torch.randn(4, 2)
    (value,) = compiled_values(out, [x], build, tmp_path)
    torch.testing.assert_close(value, model.layer(x).relu(), rtol=1e-5, atol=1e-6)
    with pytest.raises(PeltonError, match="a part of the program takes 1 inputs, not 2"):
        compiled_values(out, [x, x], lambda module, path: None, tmp_path)


def test_arguments_are_made_of_a_signature() -> None:
    leaves = (ROWS, ScalarSpec("int", "rows"))
    found = eager_program(lambda x0, x1: x0 * x1, signature(*leaves), {"rows": 3})
    assert found([torch.ones(3, 2), 4]).tolist() == [[4, 4]] * 3


@pytest.mark.parametrize("kind", ["float", "bool", "int"])
def test_numbers_that_are_no_sizes_have_no_form(kind: str) -> None:
    with pytest.raises(ExportError, match="has no form as a spec"):
        eager_program(lambda x0: x0, signature(ScalarSpec(kind)), {"rows": 3})
