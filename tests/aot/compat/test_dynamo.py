"""Contracts of TorchDynamo, AOTAutograd and Inductor."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from pelton.aot.compat import dynamo
from tests.contracts import contract

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Inductor's own


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def test_torchdynamo_is_loaded_on_first_use() -> None:
    code = "import sys, pelton.aot.compat.dynamo; assert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@contract("convert_frame.compile_lock", breaks="exports and torch.compile in several threads")
def test_lock_is_held_while_a_back_end_runs() -> None:
    free: list[bool] = []

    def try_to_take() -> None:
        taken = dynamo.compile_lock().acquire(blocking=False)
        if taken:
            dynamo.compile_lock().release()
        free.append(taken)

    def backend(module: GraphModule, _: Sequence[Any]) -> Any:
        with dynamo.compile_lock():  # the thread that has it may take it again
            thread = threading.Thread(target=try_to_take)
            thread.start()
            thread.join()
        other = threading.Thread(target=try_to_take)
        other.start()
        other.join()
        return module.forward

    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert free == [False, False]
    try_to_take()
    assert free[-1]


@contract(
    "backends.common.aot_autograd, partitioners.min_cut_rematerialization_partition, _boxed_call",
    breaks='torch.compile(backend="pelton"), forward and backward',
)
def test_forward_and_backward_graphs_are_compiled_and_called_with_one_list() -> None:
    compiled: list[list[str]] = []
    calls: list[type] = []

    def compile_graph(module: GraphModule, _: Sequence[Any]) -> Callable[[list[Any]], Any]:
        nodes = [node for node in module.graph.nodes if node.op == "call_function"]
        compiled.append([str(node.target) for node in nodes])

        def call(*arguments: Any) -> Any:
            calls.append(type(arguments[0]) if len(arguments) == 1 else tuple)
            return torch.fx.Interpreter(module).run(*arguments[0])

        return dynamo.mark_boxed(call)

    def masked(x: torch.Tensor) -> torch.Tensor:
        return x * (x > 0)

    backend = dynamo.aot_autograd(
        fw_compiler=compile_graph,
        partition_fn=dynamo.min_cut_partition(),
        decompositions={torch.ops.aten.relu.default: masked},
    )
    x = torch.tensor([2.0, -3.0], requires_grad=True)
    result = torch.compile(lambda x: torch.relu(x).sin().sum(), backend=backend)(x)
    result.backward()
    forward, backward = compiled
    assert "aten.relu.default" not in forward and "aten.gt.Scalar" in forward
    assert "aten.cos.default" in [*forward, *backward]
    assert calls == [list, list]
    torch.testing.assert_close(x.grad, torch.tensor([2.0, 0.0]).cos() * torch.tensor([1.0, 0.0]))


@contract("torch._dynamo.optimize, reset", breaks="aot.dynamo.explain: graphs, breaks and guards")
def test_graphs_and_guards_of_a_program_are_given() -> None:
    graphs: list[GraphModule] = []
    guards: list[Any] = []

    def backend(module: GraphModule, _: Sequence[Any]) -> Any:
        graphs.append(module)
        return module.forward

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    compiled = dynamo.optimize(backend, guards.extend)(program)
    assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]
    reasons = [graph.compile_subgraph_reason for graph in graphs]
    assert [getattr(reason, "graph_break", None) for reason in reasons] == [True, False]
    assert reasons[0].reason and reasons[0].user_stack[-1].filename == __file__  # type: ignore
    kinds = {guard.create_fn_name(): guard for guard in guards}
    assert kinds["TENSOR_MATCH"].name in ("L['x']", "L['y']")
    assert hasattr(kinds["TENSOR_MATCH"], "code_list")
    dynamo.reset()
    compiled(torch.ones(2))
    assert len(graphs) == 4, "after a reset, graphs are made again"


@contract("torch._dynamo.exc.UserError", breaks="DynamicShapeError of raised graphs")
def test_violated_constraint_is_an_error_of_the_user() -> None:
    class Fixed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.ones(3)

    size = torch.export.Dim("size", min=2, max=8)
    with pytest.raises(Exception) as raised:
        torch.export.export(Fixed(), (torch.ones(3),), dynamic_shapes={"x": {0: size}})
    assert dynamo.is_user_error(raised.value)
    assert not dynamo.is_user_error(ValueError())


@contract("torch._dynamo.maybe_mark_dynamic", breaks="pelton explain with dynamic sizes")
def test_marked_size_is_dynamic() -> None:
    inputs: list[list[str]] = []

    def backend(module: GraphModule, given: Sequence[Any]) -> Any:
        inputs.append([type(value).__name__ for value in given])
        return module.forward

    x = torch.ones(4, 2)
    dynamo.maybe_mark_dynamic(x, 0)
    torch.compile(lambda x: x + 1, backend=backend)(x)
    assert inputs[0].count("SymInt") == 1


@contract("torch._inductor.compile_fx.compile_fx", breaks="pelton bench by torch.compile")
def test_inductor_takes_a_graph_and_its_inputs() -> None:
    graph = torch.fx.symbolic_trace(lambda x: (x,))
    call = dynamo.inductor()(graph, [torch.ones(2)])  # without operators, nothing to compile
    (result,) = call(torch.full((2,), 3.0))
    assert result.tolist() == [3.0, 3.0]
