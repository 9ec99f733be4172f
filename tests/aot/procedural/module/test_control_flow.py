"""Branches and loops that the program decides: over trees, over globals, nested."""

from __future__ import annotations

import pytest
import torch

from pelton import aot, runtime
from tests.programs import assert_same, check_ir, through_files


class Flow(aot.CompiledModule):
    total = aot.export_global(aot.AbstractTensor(4), mutable=True)
    count = aot.export_global(aot.AbstractI64, mutable=True)

    def branch(self, p=aot.AbstractBool, x=aot.AbstractTensor(None)):
        def then(x):
            self.count += 1
            return {"x": x + 1, "n": 1, "part": x[:2]}

        return aot.cond(p, then, lambda x: {"x": x - 1, "n": 2, "part": x}, x)

    def branch_of_tensor(self, x=aot.AbstractTensor(3)):
        return aot.cond((x > 0).all(), lambda: 1.5, lambda: x[0].item())

    def sums(self, n=aot.AbstractI64, x=aot.AbstractTensor(4)):
        self.total = x * 0

        def body(i, carry):
            self.total = self.total + carry["x"]
            self.count += i
            return {"x": carry["x"] * 2, "n": carry["n"] + i}

        last = aot.for_loop(n, body, {"x": x, "n": 0})
        return last, self.total, self.count

    def halvings(self, x=aot.AbstractTensor(), limit=aot.AbstractI32):
        return aot.while_loop(
            lambda c: (c[0] >= 1).item() & (c[1] < limit), lambda c: (c[0] / 2, c[1] + 1), (x, 0)
        )

    def nested(self, n=aot.AbstractIndex, x=aot.AbstractTensor(2, 3)):
        def outer(i, x):
            def inner(j, x):
                return aot.cond((i + j) % 2 == 0, lambda: x + 1, lambda: x * 2)

            self.count += 1
            return aot.for_loop(i, inner, x)

        return aot.for_loop(n, outer, x)

    def only_state(self, n=aot.AbstractI64):
        def body(i, _):
            self.step_total(i.to(torch.float32))

        aot.for_loop(n, body)
        return self.total

    def step_total(self, x=aot.AbstractF32):
        self.total[0] = x
        self.total += 1

    def growing(self, n=aot.AbstractIndex, x=aot.AbstractTensor(None)):
        return aot.for_loop(n, lambda i, x: torch.cat([x, x[:1]]), x)


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Flow), tmp_path_factory.mktemp("flow"))


def test_cond_runs_one_branch_and_its_stores(flow: runtime.Executable) -> None:
    flow.reset_state()
    x = torch.arange(3.0)
    assert_same(flow.branch(True, x), {"x": x + 1, "n": 1, "part": x[:2]})
    assert flow.state["count"] == 1
    assert_same(flow.branch(False, x), {"x": x - 1, "n": 2, "part": x})
    assert flow.state["count"] == 1


def test_cond_takes_a_tensor_and_gives_numbers(flow: runtime.Executable) -> None:
    assert flow.branch_of_tensor(torch.tensor([1.0, 2.0, 3.0])) == 1.5
    assert flow.branch_of_tensor(torch.tensor([-2.0, 2.0, 3.0])) == -2.0


@pytest.mark.parametrize("n", [0, 1, 4])
def test_for_loop_carries_trees_and_stores_globals(flow: runtime.Executable, n: int) -> None:
    flow.reset_state()
    x = torch.ones(4)
    last, total, count = flow.sums(n, x)
    assert_same(last, {"x": x * 2**n, "n": sum(range(n))})
    assert_same(total, x * (2**n - 1))
    assert count == sum(range(n))


def test_while_loop_ends_by_either_condition(flow: runtime.Executable) -> None:
    assert_same(flow.halvings(torch.tensor(10.0), 100), (torch.tensor(0.625), 4))
    assert_same(flow.halvings(torch.tensor(10.0), 2), (torch.tensor(2.5), 2))


def test_loops_and_branches_nest(flow: runtime.Executable) -> None:
    flow.reset_state()
    x = expected = torch.ones(2, 3)
    for i in range(4):
        for j in range(i):
            expected = expected + 1 if (i + j) % 2 == 0 else expected * 2
    assert_same(flow.nested(4, x), expected)
    assert flow.state["count"] == 4


def test_a_loop_may_only_store_through_another_procedure(flow: runtime.Executable) -> None:
    flow.reset_state()
    assert_same(flow.only_state(3), torch.tensor([3.0, 3.0, 3.0, 3.0]))
    assert flow.functions["only_state"].signature.mutates == ("total",)


def test_a_dynamic_size_may_change_in_a_loop(flow: runtime.Executable) -> None:
    assert_same(flow.growing(2, torch.tensor([1.0, 2.0])), torch.tensor([1.0, 2.0, 1.0, 1.0]))


def test_control_flow_without_state_is_scf() -> None:
    class Pure(aot.CompiledModule):
        def f(self, p=aot.AbstractBool, n=aot.AbstractIndex, x=aot.AbstractTensor(4)):
            y = aot.cond(p, lambda: (x, 1), lambda: (x + 1, 2))
            y = aot.for_loop(n, lambda i, c: (c[0] + x, c[1] + 1), y)
            return aot.while_loop(lambda c: c[1] < 9, lambda c: (c[0], c[1] + 1), y)

    check_ir(
        aot.export(Pure),
        """
        CHECK: scf.if %arg0 -> (tensor<4xf32>, i64)
        CHECK: scf.yield %arg2, %c1_i64
        CHECK: else
        CHECK: func.call @add
        CHECK: scf.for %{{.*}} = %c0 to %arg1 step %c1 iter_args({{.*}}) -> (tensor<4xf32>, i64)
        CHECK: scf.while
        CHECK: arith.cmpi slt
        CHECK: scf.condition
        CHECK: scf.yield
        """,
    )


def test_control_flow_over_globals_is_branches_between_blocks() -> None:
    check_ir(
        aot.export(Flow),
        """
        CHECK: func.func @branch(
        CHECK-NOT: scf.
        CHECK: cf.cond_br %arg0, ^bb1, ^bb2
        CHECK: util.global.store {{.*}}@_count.global
        CHECK: func.func @branch_of_tensor
        CHECK: scf.if
        CHECK: func.func @sums
        CHECK: cf.cond_br
        CHECK: util.global.store {{.*}}@_total.global
        CHECK: func.func @halvings
        CHECK: scf.while
        CHECK: func.func @only_state
        CHECK: cf.cond_br
        CHECK: call @step_total
        """,
    )


def test_outside_of_procedures_they_are_plain_python() -> None:
    assert aot.cond(False, lambda x: x, lambda x: -x, 2) == -2
    assert aot.while_loop(lambda n: n < 10, lambda n: n * 2, 3) == 12
    assert aot.for_loop(3, lambda i, total: total + i, 0) == 3
