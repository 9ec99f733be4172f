"""Traced tensors: operators, indexing and methods with torch's meaning, static and dynamic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pelton import aot, runtime
from tests.programs import assert_same, check_ir, through_files


def operators(x: Any, y: Any, i: Any, f: Any) -> list[Any]:
    return [
        x + y, 2 - x, x * f, x / (i + 1), x // 2, x % 3, x**2, -x, abs(x), x @ y.T,
        x < y, x >= 1.5, (x == y) | ~(x != y), x + i, x.sum(dim=1), torch.relu(x - 5).mean(),
        torch.nn.functional.linear(x, y), x.T, x.to(torch.float16),
    ]  # fmt: skip


def reads(x: Any, i: Any, n: Any) -> list[Any]:
    return [
        x[i], x[:, i], x[0], x[-1], x[1:3], x[:, ::2], x[..., None, 0], x[i : i + 2], x[i:n],
        x[:n], x[n:], x[-2:], x[:, i : i + 1], x[None], x[:, [0, 2]], x[i, :, None], x[i][1:3],
    ]  # fmt: skip


def writes(x: Any, v: Any, i: Any, n: Any) -> list[Any]:
    a = x * 1
    a[0, i] = 7
    a[:, 1:3] = 0.5
    a[i] = v
    a[i + 1][2] = 9
    b = x + 0
    b[:, i : i + 1] = v[:1]
    b[n:] = -1
    b += 1
    b.mul_(2)
    b[:, ::3] = 4
    c = x + 0
    c[...] = 3
    c[0:2, 1:n] = x[2:4, 0 : n - 1]
    return [a, b, c]


class Tensors(aot.CompiledModule):
    def operators(
        self,
        x=aot.AbstractTensor("n", 4),
        y=aot.AbstractTensor("n", 4),
        i=aot.AbstractI64,
        f=aot.AbstractF32,
    ):
        return operators(x, y, i, f)

    def reads(self, x=aot.AbstractTensor(5, 4), i=aot.AbstractI64, n=aot.AbstractI64):
        return reads(x, i, n)

    def dynamic_reads(self, x=aot.AbstractTensor(None, 4), i=aot.AbstractI64, n=aot.AbstractI64):
        return reads(x, i, n)

    def writes(
        self,
        x=aot.AbstractTensor(5, 4),
        v=aot.AbstractTensor(4),
        i=aot.AbstractI64,
        n=aot.AbstractI64,
    ):
        return writes(x, v, i, n)

    def dynamic_writes(
        self,
        x=aot.AbstractTensor(None, 4),
        v=aot.AbstractTensor(4),
        i=aot.AbstractI64,
        n=aot.AbstractI64,
    ):
        return writes(x, v, i, n)

    def box(self, x=aot.AbstractTensor(5, 4), i=aot.AbstractI64):
        return x[i : i + 2]

    def shapes(self, x=aot.AbstractTensor(None, 4)):
        return [*x.shape, x.size(-1), x.dim(0), x.dim(), x.ndim, x.numel()]


@pytest.fixture(scope="module")
def tensors(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Tensors), tmp_path_factory.mktemp("tensors"))


X = torch.arange(20.0).reshape(5, 4)


@pytest.mark.parametrize("rows", [1, 5])
def test_operators_are_those_of_torch(tensors: runtime.Executable, rows: int) -> None:
    x, y = X[:rows], torch.randn(rows, 4)
    assert_same(tensors.operators(x, y, 2, 0.5), operators(x, y, 2, 0.5), rtol=1e-3)


@pytest.mark.parametrize(("i", "n"), [(0, 1), (1, 3), (2, 4)])
@pytest.mark.parametrize("name", ["reads", "dynamic_reads"])
def test_indexing_is_that_of_torch(tensors: runtime.Executable, name: str, i: int, n: int) -> None:
    assert_same(getattr(tensors, name)(X, i, n), reads(X, i, n))


def test_negative_positions_count_from_the_end(tensors: runtime.Executable) -> None:
    assert_same(tensors.reads(X, 1, -1)[8:11], [X[1:-1], X[:-1], X[-1:]])


@pytest.mark.parametrize(("i", "n"), [(0, 2), (2, 4)])
@pytest.mark.parametrize("name", ["writes", "dynamic_writes"])
def test_assignment_is_that_of_torch(
    tensors: runtime.Executable, name: str, i: int, n: int
) -> None:
    v = torch.tensor([10.0, 20.0, 30.0, 40.0])
    assert_same(getattr(tensors, name)(X, v, i, n), writes(X, v, i, n))


def test_shapes_are_numbers_where_they_are_known(tensors: runtime.Executable) -> None:
    assert tensors.shapes(X) == [5, 4, 4, 5, 2, 2, 20]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.reads(X, 5, 1), "index beyond the end of dimension 0"),
        (lambda t: t.box(X, 4), "slice beyond the end of dimension"),
        (lambda t: t.box(X, -1), "slice before the start of dimension"),
    ],
)
def test_positions_out_of_range_stop_the_program_with_the_line(
    tensors: runtime.Executable, call: Callable[[runtime.Executable], Any], message: str
) -> None:
    with pytest.raises(aot.PeltonError, match=rf"{message}.*test_tensors\.py:\d+"):
        call(tensors)


def test_contiguous_boxes_are_flow_slices_and_others_are_not() -> None:
    class Boxes(aot.CompiledModule):
        def rows(self, x=aot.AbstractTensor(4, 8), i=aot.AbstractIndex):
            return x[i : i + 2]

        def columns(self, x=aot.AbstractTensor(4, 8), i=aot.AbstractIndex):
            return x[:, i : i + 2]

    check_ir(
        aot.export(Boxes),
        """
        CHECK: func.func @rows
        CHECK: util.status.check_ok {{.*}}slice before the start of dimension 0
        CHECK: flow.tensor.slice %arg0[%arg1, %c0{{.*}} for %c2{{.*}}, %c8{{.*}}]
        CHECK: func.func @columns
        CHECK: tensor.extract_slice %arg0[0, %arg1] [4, 2] [1, 1]
        """,
    )


def test_one_use_of_an_operator_is_one_function() -> None:
    class Sums(aot.CompiledModule):
        def f(self, x=aot.AbstractTensor(2), y=aot.AbstractTensor(2)):
            return (x + y) + (y + x)

    out = str(aot.export(Sums).mlir_module)
    assert out.count("func.func private @add") == 1
    assert out.count("call @add(") == 3
