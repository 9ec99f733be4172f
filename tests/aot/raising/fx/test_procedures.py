"""Procedures of CompiledModules, raised: their operations, control flow and globals."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pelton import aot
from tests.aot.raising.oracles import forms_of
from tests.programs import assert_same

X = torch.randn(5, 4)


class Boxes(aot.CompiledModule):
    """Slices, updates, fills and reshapes, at positions that only a call tells."""

    table = aot.export_global(aot.AbstractTensor(6, 4), mutable=True, uninitialized=False)

    def read(self, x=aot.AbstractTensor(None, 4), n=aot.AbstractIndex):
        return x[n], x[1:n], x[-1], x.reshape(-1), x.shape[0]

    def write(self, x=aot.AbstractTensor(2, 3), row=aot.AbstractI32, column=aot.AbstractI64):
        changed = aot.IREE.tensor_update(self.table, x, row, column)
        self.table = changed
        return changed, aot.IREE.tensor_slice(changed, (row, 2), 1)

    def fill(self, n=aot.AbstractIndex, value=aot.AbstractF32):
        return aot.IREE.tensor_splat(n, 2, value=value, dtype=torch.float32)


class Numbers(aot.CompiledModule):
    def mixed(self, a=aot.AbstractI32, b=aot.AbstractI64, x=aot.AbstractF32, y=aot.AbstractF64):
        return a + 1, a * 2 // 3, b % 5, b - a, x * 0.1, y / 3, x**2.0, -b, a > 2, abs(b)

    def limits(self, a=aot.AbstractIndex, b=aot.AbstractI64):
        return a.clamp(2, 7), b.clamp(-3, 3), (b & 6) | 1, b << 2, b.to(torch.float32)


class Flow(aot.CompiledModule):
    total = aot.export_global(aot.AbstractTensor(3), mutable=True, uninitialized=False)
    calls = aot.export_global(aot.AbstractIndex, mutable=True)

    def branch(self, x=aot.AbstractTensor(3), n=aot.AbstractI32):
        def larger(value):
            self.total = self.total + value
            return value * 2, n + 1

        return aot.cond(n > 2, larger, lambda value: (value - 1, n), x)

    def loop(self, x=aot.AbstractTensor(3), n=aot.AbstractIndex):
        def body(i, carry):
            self.calls = self.calls + 1
            value, count = carry
            value = aot.cond(i > 1, lambda v: v + x, lambda v: v * 2.0, value)
            return value, count + i

        return aot.for_loop(n, body, (x, 0))

    def search(self, x=aot.AbstractTensor(3)):
        def small(carry):
            return carry[0].sum().item() < 100.0

        return aot.while_loop(small, lambda carry: (carry[0] * 2.0, carry[1] + 1), (x, 0))

    def state(self):
        return self.total, self.calls


def test_boxes_are_read(tmp_path: Path) -> None:
    for form in forms_of(aot.export(Boxes), tmp_path, "read"):
        for n in (1, 3, 4):
            assert_same(form(X, n), (X[n], X[1:n], X[-1], X.reshape(-1), 5))


def test_boxes_are_written(tmp_path: Path) -> None:
    update = torch.randn(2, 3)
    for form in forms_of(aot.export(Boxes), tmp_path, "write"):
        expected = torch.zeros(6, 4)
        for row, column in ((0, 0), (4, 1), (2, 1)):
            expected[row : row + 2, column : column + 3] = update
            assert_same(form(update, row, column), (expected, expected[row : row + 2, 1:2]))


def test_tensors_are_filled(tmp_path: Path) -> None:
    for form in forms_of(aot.export(Boxes), tmp_path, "fill"):
        assert_same(form(3, 0.5), torch.full((3, 2), 0.5))


@pytest.mark.parametrize(("a", "b"), [(5, 13), (1, -7), (-4, 0), (2**31 - 1, 2**40)])
def test_numbers_have_the_arithmetic_of_their_types(tmp_path: Path, a: int, b: int) -> None:
    x, y = 0.3, 0.7
    f32 = torch.tensor(x)
    wrapped = torch.tensor(a, dtype=torch.int32)
    expected = (
        (wrapped + 1).item(), (wrapped * 2 // 3).item(), b % 5, b - a, (f32 * 0.1).item(), y / 3,
        (f32**2.0).item(), -b, a > 2, abs(b),
    )  # fmt: skip
    for form in forms_of(aot.export(Numbers), tmp_path, "mixed"):
        assert_same(form(a, b, x, y), expected, rtol=1e-6, atol=0.0)


def test_numbers_are_limited_and_converted(tmp_path: Path) -> None:
    for form in forms_of(aot.export(Numbers), tmp_path, "limits"):
        for a, b in ((0, -9), (5, 2), (9, 7)):
            limited = (min(max(a, 2), 7), min(max(b, -3), 3))
            assert_same(form(a, b), (*limited, (b & 6) | 1, b << 2, float(b)))


def test_a_branch_stores_to_globals(tmp_path: Path) -> None:
    x = torch.randn(3)
    for form in forms_of(aot.export(Flow), tmp_path, "branch"):
        assert_same(form(x, 5), (x * 2, 6))
        assert_same(form(x, 1), (x - 1, 1))
    program = aot.to_torch(aot.export(Flow))
    for n in (5, 1, 3):
        program.branch(x, n)
    assert_same(program.functions["state"](), (x * 2, 0))


def test_a_loop_with_a_branch_counts_in_a_global(tmp_path: Path) -> None:
    x = torch.randn(3)
    for form in forms_of(aot.export(Flow), tmp_path, "loop"):
        for n in (0, 1, 4):
            value = x
            for i in range(n):
                value = value + x if i > 1 else value * 2
            assert_same(form(x, n), (value, sum(range(n))))


def test_a_loop_until_a_condition(tmp_path: Path) -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    for form in forms_of(aot.export(Flow), tmp_path, "search"):
        assert_same(form(x), (x * 32, 5))


def test_a_loop_calls_a_procedure_that_stores(tmp_path: Path) -> None:
    class Repeated(aot.CompiledModule):
        total = aot.export_global(aot.AbstractTensor(2), mutable=True, uninitialized=False)

        def add(self, x=aot.AbstractTensor(2)):
            self.total = self.total + x
            return self.total

        def repeat(self, x=aot.AbstractTensor(2), n=aot.AbstractIndex):
            return aot.for_loop(n, lambda i, last: self.add(last), x)

    for form in forms_of(aot.export(Repeated), tmp_path, "repeat"):
        assert_same(form(torch.ones(2), 3), torch.full((2,), 4.0))
        assert_same(form(torch.ones(2), 1), torch.full((2,), 5.0))


def test_stores_in_loops_reach_later_calls() -> None:
    program = aot.to_torch(aot.export(Flow))
    program.loop(torch.ones(3), 4)
    program.loop(torch.ones(3), 3)
    assert program.functions["state"]()[1] == 7


def test_printing_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    class Noisy(aot.CompiledModule):
        def double(self, x=aot.AbstractTensor(2)):
            aot.print("doubling", x)
            return x + x

    aot.to_torch(aot.export(Noisy))(torch.ones(2))
    assert capsys.readouterr().err == "=== doubling ===\ntensor([1., 1.])\n"
