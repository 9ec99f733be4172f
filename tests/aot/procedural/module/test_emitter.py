"""`IREE.tensor_…`: what each emits, with static and dynamic sizes and positions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pelton import aot, runtime
from tests.programs import assert_same, check_ir, through_files

IREE = aot.IREE


class Emitted(aot.CompiledModule):
    def dims(self, x=aot.AbstractTensor(None, 4)):
        return IREE.tensor_dim(x, 0), IREE.tensor_dim(x, 1, dtype=torch.int32)

    def empty(self, n=aot.AbstractIndex):
        return IREE.tensor_empty(2, 3).shape[0], IREE.tensor_empty(n, 3, dtype=torch.int8)

    def splats(self, n=aot.AbstractIndex, v=aot.AbstractF32):
        return (
            IREE.tensor_splat(2, 3, value=v, dtype=torch.float32),
            IREE.tensor_splat(n, value=7, dtype=torch.int64),
            IREE.tensor_splat(n, 2, value=v, dtype=torch.float16),
        )

    def reshapes(self, x=aot.AbstractTensor(None, 4), n=aot.AbstractIndex):
        return IREE.tensor_reshape(x, -1), IREE.tensor_reshape(x, n, 2, -1)

    def slices(self, x=aot.AbstractTensor(4, 6), i=aot.AbstractIndex, n=aot.AbstractIndex):
        return (
            IREE.tensor_slice(x, 1, (2, 3)),
            IREE.tensor_slice(x, i, (0, 6)),
            IREE.tensor_slice(x, (i, n), (1, n)),
        )

    def updates(
        self,
        x=aot.AbstractTensor(None, 6),
        u=aot.AbstractTensor(2, None),
        i=aot.AbstractIndex,
    ):
        return IREE.tensor_update(x, u, i, 1), x

    def traced(self, x=aot.AbstractTensor(None), n=aot.AbstractI64):
        IREE.tensor_trace("TITLE", x, n)
        aot.print("value of n:", n)
        return x + n


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("emitted")


@pytest.fixture(scope="module")
def emitted(folder: Path) -> runtime.Executable:
    return through_files(aot.export(Emitted), folder)


X = torch.arange(24.0).reshape(4, 6)


def test_dims_and_fresh_tensors(emitted: runtime.Executable) -> None:
    assert emitted.dims(torch.zeros(3, 4)) == (3, 4)
    size, empty = emitted.empty(5)
    assert (size, empty.shape, empty.dtype) == (2, (5, 3), torch.int8)
    expected = (
        torch.full((2, 3), 1.5),
        torch.full((4,), 7),
        torch.full((4, 2), 1.5, dtype=torch.float16),
    )
    assert_same(emitted.splats(4, 1.5), expected)


def test_reshape_keeps_all_elements(emitted: runtime.Executable) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    assert_same(emitted.reshapes(x, 3), (x.reshape(-1), x.reshape(3, 2, 2)))
    with pytest.raises(aot.PeltonError, match="cannot be reshaped"):
        emitted.reshapes(x, 5)


@pytest.mark.parametrize(("i", "n"), [(0, 1), (1, 2), (2, 2)])
def test_slices_keep_the_rank(emitted: runtime.Executable, i: int, n: int) -> None:
    expected = (X[1:2, 2:5], X[i : i + 1], X[i : i + n, 1 : 1 + n])
    assert_same(emitted.slices(X, i, n), expected)


@pytest.mark.parametrize("width", [1, 3, 5])
def test_updates_leave_the_target(emitted: runtime.Executable, width: int) -> None:
    update = -torch.ones(2, width)
    expected = X.clone()
    expected[2:4, 1 : 1 + width] = update
    assert_same(emitted.updates(X, update, 2), (expected, X))


def test_boxes_out_of_range_stop_the_program(emitted: runtime.Executable) -> None:
    with pytest.raises(aot.PeltonError, match="beyond the end of dimension 0"):
        emitted.slices(X, 3, 2)
    with pytest.raises(aot.PeltonError, match="beyond the end of dimension 1"):
        emitted.updates(X, torch.zeros(2, 6), 0)


def test_traces_print_to_stderr(emitted: runtime.Executable, folder: Path) -> None:
    script = (
        "import sys, numpy as np; from pelton import runtime\n"
        "runtime.load(sys.argv[1]).traced(np.ones(2, np.float32), 5)"
    )
    command = [sys.executable, "-c", script, str(folder / "module.vmfb")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "=== TITLE ===" in done.stderr
    assert "2xf32=1 1" in done.stderr
    assert "=== value of n: ===\ni64=5" in done.stderr


def test_operations_are_those_of_flow() -> None:
    check_ir(
        aot.export(Emitted),
        """
        CHECK: func.func @dims
        CHECK: tensor.dim %arg0, %c0
        CHECK: func.func @empty
        CHECK: flow.tensor.empty : tensor<2x3xf32>
        CHECK: flow.tensor.empty : tensor<?x3xi8>{%arg0}
        CHECK: func.func @splats
        CHECK: flow.tensor.splat %arg1 : tensor<2x3xf32>
        CHECK: flow.tensor.splat %{{.*}} : tensor<?xi64>{%arg0}
        CHECK: func.func @reshapes
        CHECK: flow.tensor.reshape %arg0 : tensor<?x4xf32>{%dim} -> tensor<?xf32>
        CHECK: func.func @slices
        CHECK: flow.tensor.slice %arg0[%c1, %c2 for %c1{{.*}}, %c3]
        CHECK: func.func @updates
        CHECK: tensor.insert_slice %arg1 into %arg0[%arg2, 1]
        CHECK: func.func @traced
        CHECK: flow.tensor.trace "TITLE" = [
        """,
    )
