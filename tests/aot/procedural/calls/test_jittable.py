"""Torch functions in procedures: shared by signature, with constants, weights, trees and state."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot, runtime
from tests.programs import assert_same, check_ir, through_files

NET = nn.Linear(4, 3).requires_grad_(False)
CLOSED_OVER = torch.arange(4.0)


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


class Calls(aot.CompiledModule):
    params = aot.export_parameters(NET)
    cache = aot.export_global(aot.AbstractTensor(4, 2), mutable=True)

    def twice(self, x=aot.AbstractTensor(2, 4)):
        return self.step(x, 2.0), self.step(scale=2.0, x=x), self.step(x, 3.0)

    def weights(self, x=aot.AbstractTensor(None, 4)):
        return self.by_parameters(x, self.params), self.by_method(x), NET.weight @ x[0]

    def trees(self, x=aot.AbstractTensor(2)):
        return self.rearranged({"a": x, "b": [x + 1, None]}, tail=(x,))

    def scalars(self, x=aot.AbstractTensor(4), n=aot.AbstractI64, f=aot.AbstractF32):
        return self.scaled(x, n, f)

    def in_place(self, x=aot.AbstractTensor(2)):
        self.put_row(self.cache, x, 1)
        y = x + 0
        self.put_first(y)
        return self.cache, y

    def sizes(self, x=aot.AbstractTensor("n", 2), y=aot.AbstractTensor(None, 2)):
        return self.added(x, y), self.added(x, x), self.size(y)

    def closed_over(self, x=aot.AbstractTensor(4)):
        return self.plus_closed(x)

    @aot.jittable
    def step(x, scale):
        return x * scale + 1

    @aot.jittable
    def by_parameters(x, params):
        return torch.func.functional_call(NET, params, (x,))

    by_method = aot.jittable(NET.forward, function_name="linear")

    @aot.jittable
    def rearranged(tree, *, tail, unused=None):
        return Pair(left=tree["b"][0], right={"tail": tail, "a": tree["a"] * 2, "n": None, "k": 3})

    @aot.jittable
    def scaled(x, n, f):
        return x[:n] * f

    @aot.jittable
    def put_row(cache, x, row):
        cache[row] = x

    @aot.jittable
    def put_first(x):
        x[0] = 5

    @aot.jittable
    def added(x, y):
        return x + y

    @aot.jittable
    def size(x):
        return x.shape[0] * 2

    @aot.jittable
    def plus_closed(x):
        return Calls.step(x, 1.0) + CLOSED_OVER


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Calls), tmp_path_factory.mktemp("calls"))


def test_a_second_call_with_the_same_types_shares_the_body(calls: runtime.Executable) -> None:
    text = str(aot.export(Calls).mlir_module)
    assert text.count("func.func private @step") == 2  # one for each constant
    x = torch.randn(2, 4)
    assert_same(calls.twice(x), (x * 2 + 1, x * 2 + 1, x * 3 + 1))


def test_weights_come_by_parameters_methods_and_closures(calls: runtime.Executable) -> None:
    x = torch.randn(5, 4)
    assert_same(calls.weights(x), (NET(x), NET(x), NET.weight @ x[0]))
    assert str(aot.export(Calls).mlir_module).count("private @_params.weight") == 1


def test_trees_pass_both_ways(calls: runtime.Executable) -> None:
    x = torch.tensor([1.0, 2.0])
    result = calls.trees(x)
    assert_same(result.left, x + 1)
    assert_same(result.right, {"tail": (x,), "a": x * 2, "n": None, "k": 3})


def test_traced_numbers_are_arguments(calls: runtime.Executable) -> None:
    x = torch.arange(4.0)
    assert_same(calls.scalars(x, 3, 0.5), x[:3] * 0.5)
    with pytest.raises(aot.PeltonError, match="integer must be at least 0"):
        calls.scalars(x, -1, 0.5)


def test_changes_in_place_reach_the_procedure_and_globals(calls: runtime.Executable) -> None:
    calls.reset_state()
    x = torch.tensor([1.0, 2.0])
    cache, y = calls.in_place(x)
    expected = torch.zeros(4, 2)
    expected[1] = x
    assert_same((cache, y), (expected, torch.tensor([5.0, 2.0])))
    assert calls.functions["in_place"].signature.mutates == ("cache",)


def test_sizes_that_a_function_needs_equal_are_checked(calls: runtime.Executable) -> None:
    x, y = torch.randn(3, 2), torch.randn(3, 2)
    assert_same(calls.sizes(x, y), (x + y, x + x, 6))
    with pytest.raises(aot.PeltonError, match="calling added: dimension 0 of argument y"):
        calls.sizes(x, torch.randn(4, 2))


def test_closed_over_tensors_and_jittables(calls: runtime.Executable) -> None:
    x = torch.ones(4)
    assert_same(calls.closed_over(x), x + 1 + CLOSED_OVER)


def test_a_jittable_is_the_plain_function_outside_of_procedures() -> None:
    assert_same(Calls.step(torch.ones(2), 3.0), torch.full((2,), 4.0))


def test_options_reach_the_function() -> None:
    class Options(aot.CompiledModule):
        def f(self, x=aot.AbstractTensor(2, 4), y=aot.AbstractTensor(3, 4)):
            return self.act(x), self.act(y), self.whole(x)

        act = aot.jittable(
            lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
            function_name="act",
            decompose_ops=[torch.ops.aten.gelu],
            dynamic_shapes={"x": {0: torch.export.Dim("rows")}},
        )
        whole = aot.jittable(torch.nn.functional.gelu)

    check_ir(
        aot.export(Options),
        """
        CHECK: call @act({{.*}}) : (!torch.vtensor<[?,4],f32>)
        CHECK: call @act({{.*}}) : (!torch.vtensor<[?,4],f32>)
        CHECK: func.func private @act
        CHECK-NOT: torch.aten.gelu
        CHECK: torch.aten.tanh
        CHECK: func.func private @gelu
        CHECK: torch.aten.gelu
        """,
    )


def test_an_unknown_pass_is_refused() -> None:
    with pytest.raises(aot.ExportError, match="unknown pass 'fuse'; known: functorch_func"):
        aot.jittable(lambda x: x, passes=("fuse",))


def test_a_function_without_arguments_is_private() -> None:
    class Constant(aot.CompiledModule):
        def f(self):
            return self.compute()

        @aot.jittable
        def compute():
            return torch.ones(2, 2)

    check_ir(
        aot.export(Constant),
        "CHECK: call @compute() : () -> !torch.vtensor<[2,2],f32>\n"
        "CHECK: func.func private @compute() -> !torch.vtensor<[2,2],f32>",
    )


def test_a_closed_over_module_uses_the_globals_of_its_parameters(tmp_path: Path) -> None:
    net = nn.Linear(64, 64)

    class Closure(aot.CompiledModule):
        params = aot.export_parameters(net, external=True)

        def run(self, x=aot.AbstractTensor(None, 64, dtype=torch.float32)):
            return self.apply(x)

        @aot.jittable
        def apply(x):
            return net(x)

    out = aot.export(Closure)
    assert str(out.mlir_module).count("util.global private") == 2
    out.save_parameters(tmp_path / "weights.irpa")
    exe = through_files(out, tmp_path, parameters=tmp_path / "weights.irpa")
    x = torch.randn(3, 64)
    assert_same(exe.run(x), net(x), atol=1e-4)
