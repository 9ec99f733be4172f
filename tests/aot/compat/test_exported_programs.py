"""Contracts of exported programs: their graph, and torch's JSON of them."""

from __future__ import annotations

import copy
import json
import operator
from typing import Any

import pytest
import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from pelton.aot.compat.exported_programs import (
    decompose,
    graph_to_json,
    program_from_json,
    size_functions,
    with_graph,
)
from tests.contracts import contract

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch's own pytrees


def program_of_linear() -> ExportedProgram:
    return torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),))


@contract(
    "torch.export.exported_program._decompose_exported_program, torch._export.utils",
    breaks="legalisation, which decomposes programs",
)
def test_a_program_is_decomposed_as_torch_does() -> None:
    def squares(x: torch.Tensor) -> torch.Tensor:
        return x * x

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.square(torch.nn.functional.linear(x, x)).clamp(0, 1)

    program = torch.export.export(Model(), (torch.ones(2, 2),))
    table = {torch.ops.aten.square.default: squares}
    targets = [node.target for node in decompose(program, table).graph.nodes]
    assert targets == [node.target for node in program.run_decompositions(table).graph.nodes]
    assert torch.ops.aten.mul.Tensor in targets and torch.ops.aten.linear.default in targets
    assert torch.ops.aten.square.default in [node.target for node in program.graph.nodes]


def test_an_operator_that_is_registered_later_stays_whole() -> None:
    decompose(program_of_linear(), {})  # collects the operators of torch
    library = torch.library.Library("contract_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.ops.contract_test.twice(x) * 3

    program = torch.export.export(Model(), (torch.ones(2),))
    targets = [node.target for node in decompose(program, {}).graph.nodes]
    assert torch.ops.contract_test.twice.default in targets


@contract("ExportedProgram._update", breaks="legalisation, which gives programs another graph")
def test_program_gets_another_graph_and_keeps_its_state() -> None:
    program = program_of_linear()
    graph = copy.deepcopy(program.graph)
    for given, copied in zip(program.graph.nodes, graph.nodes, strict=True):
        copied.name = given.name  # which the signature names; a copy may rename it
    (call,) = [node for node in graph.nodes if node.op == "call_function"]
    with graph.inserting_before(call):
        negative = graph.call_function(torch.ops.aten.neg.default, (call.args[0],))
    negative.meta = {**call.args[0].meta}  # type: ignore[union-attr]
    call.replace_input_with(call.args[0], negative)  # type: ignore[arg-type]
    changed = with_graph(program, GraphModule(program.graph_module, graph))
    x = torch.tensor([[1.0, 2.0, 3.0]])
    torch.testing.assert_close(changed.module()(x), program.module()(-x))
    assert len(changed.graph.nodes) == len(program.graph.nodes) + 1, "the first stays as it is"
    assert changed.state_dict["weight"] is program.state_dict["weight"], "weights are shared"


@contract(
    "torch._export.serde.serialize: serialize, _dict_to_dataclass, ExportedProgramDeserializer",
    breaks="FxPrograms.save and FxPrograms.load",
)
def test_program_comes_back_from_json_without_its_tensors() -> None:
    program = program_of_linear()
    data = json.loads(graph_to_json(program))
    assert {"graph_module", "range_constraints", "guards_code"} <= data.keys()
    read = program_from_json(data, program.state_dict, program.constants)
    assert [str(n.target) for n in read.graph.nodes] == [str(n.target) for n in program.graph.nodes]
    x = torch.ones(1, 3)
    torch.testing.assert_close(read.module()(x), program.module()(x))


@contract("serialize._SYM_OPS", breaks="FxPrograms.load, which refuses calls of other functions")
def test_functions_on_sizes_are_listed() -> None:
    functions = set(size_functions())
    assert {operator.add, operator.mul, operator.floordiv, torch.sym_max} <= functions
    assert not {eval, exec, getattr} & functions
