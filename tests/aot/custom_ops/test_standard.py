"""Printing while a program runs, and moves between devices."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pelton import aot
from pelton.aot.custom_ops import custom_op, trace_tensor, transfer_to_device
from tests.programs import assert_same, check_ir, compiled

DTYPES = (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool)


def test_tensors_are_traced_in_eager_and_when_the_program_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def traced(x: torch.Tensor) -> torch.Tensor:
        trace_tensor("before", x)
        y = x + 1
        trace_tensor("after", y)
        return y * 2

    x = torch.tensor([[1.0, 2.0]])
    traced(x)
    said = capfd.readouterr().err
    assert said.index("=== before ===") < said.index("=== after ===")
    exe = compiled(tmp_path, traced, (torch.zeros(3, 2),), dynamic_shapes=({0: "rows"},))
    capfd.readouterr()
    assert_same(exe(x), (x + 1) * 2)
    said = capfd.readouterr().err
    assert said.index("=== before ===") < said.index("1x2xf32=[1 2]")
    assert said.index("1x2xf32=[1 2]") < said.index("=== after ===\n1x2xf32=[2 3]")


def test_trace_has_the_operation_of_iree() -> None:
    def traced(x: torch.Tensor) -> torch.Tensor:
        trace_tensor("KEY", x)
        return x + 1

    check_ir(
        aot.export(traced, args=(torch.ones(2),)),
        'CHECK: flow.tensor.trace "KEY" = [%{{.*}} : tensor<?xf32>{%{{.*}}}]',
    )


def test_every_element_type_is_moved(tmp_path: Path) -> None:
    def moved(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(transfer_to_device(tensor, 1) for tensor in tensors)

    args = tuple(torch.tensor([[0, 1], [1, 200]]).to(dtype) for dtype in DTYPES)
    exe = compiled(tmp_path, moved, args)
    assert_same(exe(*args), args)


def test_every_element_type_passes_through_an_operator_compiled_in_eager() -> None:
    same = custom_op(
        "testing::same_values(Tensor x, bool flag=True) -> Tensor",
        shapes="... -> ...",
        body="%0 = arith.select %flag, %x, %x : $x\nreturn %0 : $x",
    )
    for dtype in (*DTYPES, torch.bfloat16, torch.float64, torch.int8, torch.int32):
        x = torch.tensor([[0, 1], [1, 100]]).to(dtype)
        assert_same(same(x), x)


def test_move_in_eager_is_a_copy_with_a_gradient() -> None:
    x = torch.ones(2, requires_grad=True)
    y = transfer_to_device(x, aot.DeviceAffinity(3, [0]))
    assert y.data_ptr() != x.data_ptr()
    y.sum().backward()
    assert_same(x.grad, torch.ones(2))


def test_move_to_no_device_is_refused() -> None:
    with pytest.raises(aot.ExportError, match="numbered from 0"):
        transfer_to_device(torch.ones(2), -1)


def test_moved_and_traced_values_are_raised_to_torch() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        trace_tensor("x", x)
        return transfer_to_device(x + 1, 1) * 2

    x = torch.ones(2)
    assert_same(aot.to_torch(aot.export(program, args=(x,)))(x), (x + 1) * 2)
