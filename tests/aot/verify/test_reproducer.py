"""Reproducers: calls of operators as Python, and scripts of those that are wrong alone."""

from __future__ import annotations

import math
import operator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from pelton import aot
from pelton.aot.raising.fx import Raised
from pelton.aot.targets.iree.target import IreeTarget
from pelton.aot.verify.options import Numerics
from pelton.aot.verify.reproducer import IsolatedBuild, OpCase, reproduce
from pelton.runtime.call.signature import Signature

aten = torch.ops.aten
X, Y = torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 4.0]])


def case(target: Any, *args: Any, **kwargs: Any) -> OpCase:
    """Return a call; `"x"` and `"y"` stand for tensors among its arguments."""
    graph = Graph()
    nodes = {name: graph.placeholder(name) for name in ("x", "y")}

    def put(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(put, value))
        return nodes.get(value, value) if isinstance(value, str) else value

    node = graph.call_function(target, put(args), {k: put(v) for k, v in kwargs.items()})
    graph.output(node)
    found = of(graph, node)
    assert found is not None
    return found


def of(graph: Graph, node: Node, values: dict[Node, torch.Tensor] | None = None) -> OpCase | None:
    module = GraphModule({"weight": torch.ones(2), "inner": torch.nn.Module()}, graph)
    copies = dict(zip(graph.nodes, module.graph.nodes, strict=True))
    program = Raised("main", module, Signature("main"), (), ())
    known = {copies[key]: value for key, value in (values or {}).items()}
    return OpCase.of(copies[node], known, program, [X, Y])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            lambda: case(aten.add.Tensor, "x", "y", alpha=2),
            "torch.ops.aten.add.Tensor(x0, x1, alpha=2)",
        ),
        (
            lambda: case(aten.cat.default, ["x", "y", "x"], 1),
            "torch.ops.aten.cat.default([x0, x1, x2], 1)",
        ),
        (
            lambda: case(aten.clamp.default, "x", -math.inf, math.inf),
            "torch.ops.aten.clamp.default(x0, float('-inf'), float('inf'))",
        ),
        (
            lambda: case(aten.full_like.default, "x", math.nan),
            "torch.ops.aten.full_like.default(x0, float('nan'))",
        ),
        (
            lambda: case(aten.to.dtype, "x", torch.float16),
            "torch.ops.aten.to.dtype(x0, torch.float16)",
        ),
        (
            lambda: case(aten.sum.dim_IntList, "x", None, True, dtype=torch.float64),
            "torch.ops.aten.sum.dim_IntList(x0, None, True, dtype=torch.float64)",
        ),
    ],
    ids=["kwargs", "lists", "infinities", "nan", "dtypes", "none"],
)
def test_a_call_is_told_as_python(made: Any, expected: str) -> None:
    assert made().expression() == expected


@pytest.mark.parametrize(
    "made",
    [
        lambda: case(aten.add.Tensor, "x", "y", alpha=2),
        lambda: case(aten.cat.default, ["x", "y", "x"], 1),
        lambda: case(aten.full_like.default, "x", 2.0, device=torch.device("cpu")),
        lambda: case(aten._to_copy.default, "x", dtype=torch.int8, layout=torch.strided),
        lambda: case(aten.clone.default, "x", memory_format=torch.contiguous_format),
        lambda: case(aten.gelu.default, "x", approximate="tanh"),
    ],
    ids=["add", "cat", "device", "layout", "memory_format", "text"],
)  # fmt: skip
def test_the_python_of_a_call_computes_what_the_call_does(made: Any) -> None:
    call = made()
    names = {f"x{index}": value for index, value in enumerate(call.inputs)}
    told = eval(call.expression(), {"torch": torch, **names})
    assert torch.equal(told, call.function()(*call.inputs))


def test_inputs_are_copies() -> None:
    call = case(aten.neg.default, "x")
    assert torch.equal(call.inputs[0], X)
    assert call.inputs[0].data_ptr() != X.data_ptr()


def test_sizes_and_weights_are_computed_where_they_are_needed() -> None:
    graph = Graph()
    x, _ = graph.placeholder("x"), graph.placeholder("y")
    rows = graph.call_function(aten.sym_size.int, (x, 1))
    twice = graph.call_function(operator.mul, (rows, 2))
    weight = graph.get_attr("weight")
    node = graph.call_function(aten.select.int, (weight, 0, twice))
    graph.output(node)
    found = of(graph, node)
    assert found is not None
    assert found.expression() == "torch.ops.aten.select.int(x0, 0, 4)"
    assert torch.equal(found.inputs[0], torch.ones(2))


def test_a_value_that_was_recorded_is_not_computed_again() -> None:
    graph = Graph()
    x, _ = graph.placeholder("x"), graph.placeholder("y")
    hidden = graph.call_function(aten.exp.default, (x,))
    node = graph.call_function(aten.neg.default, (hidden,))
    graph.output(node)
    found = of(graph, node, {hidden: torch.full((2,), 9.0)})
    assert found is not None
    assert found.inputs[0].tolist() == [9, 9]


def test_calls_of_graphs_and_of_other_functions_are_no_cases() -> None:
    graph = Graph()
    x, _ = graph.placeholder("x"), graph.placeholder("y")
    inner = graph.get_attr("inner")
    branch = graph.call_function(torch.ops.higher_order.cond, (x, inner, inner, (x,)))
    other = graph.call_function(torch.relu, (x,))
    graph.output((branch, other))
    assert of(graph, branch) is None
    assert of(graph, other) is None


def build(module: Any, path: Path) -> None:
    cpu = IreeTarget("cpu", backend="llvm-cpu")
    cpu.build(module, path, cpu.options({}))


def never(module: Any, path: Path) -> None:
    raise AssertionError("compiled")


@pytest.mark.parametrize(
    "call",
    [OpCase(operator.getitem, ([1], 0), {}, [X]), OpCase(aten.full.default, ([2], 1), {}, [])],
    ids=["no operator", "no tensors"],
)
def test_what_has_no_script_is_not_compiled(call: OpCase, tmp_path: Path) -> None:
    assert reproduce(call, IsolatedBuild(never, Numerics(), "cpu"), tmp_path) is None
    assert [*tmp_path.iterdir()] == []


def test_a_wrong_operator_has_a_script_beside_its_inputs(tmp_path: Path) -> None:
    table = {**aot.current_aot_decompositions(), aten.sinh.default: torch.sin}
    how = IsolatedBuild(build, Numerics(), "cpu", table)
    path = reproduce(case(aten.sinh.default, "x"), how, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "reproduce.py"
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "inputs.safetensors", "module.mlir", "reproduce.py",
    ]  # fmt: skip
    compile(path.read_text(), "reproduce.py", "exec")
    assert "return torch.ops.aten.sinh.default(x0)" in path.read_text()
