"""Traced numbers: torch's arithmetic, Python's rounding, and the types of results."""

from __future__ import annotations

import pytest
import torch

from pelton import aot, runtime
from tests.programs import assert_same, check_ir, through_files


class Numbers(aot.CompiledModule):
    def integers(self, i=aot.AbstractI32, j=aot.AbstractI64):
        return {
            "+": i + 1, "r-": 10 - i, "*": i * j, "//": j // 3, "r//": 7 // i, "%": j % 3,
            "-": -i, "abs": abs(j), "~": ~i, "<<": i << 2, ">>": j >> 1, "^": i ^ 5,
        }  # fmt: skip

    def floats(self, x=aot.AbstractF32, y=aot.AbstractF64):
        return {
            "+": x + 1.5, "r/": 3 / x, "**": x**2, "//": x // 0.3, "%": x % 0.3,
            "wide": x + y, "y": y * 2, "clamp": x.clamp(0, 0.5), "-": -x, "abs": abs(y),
        }  # fmt: skip

    def mixed(self, i=aot.AbstractI32, x=aot.AbstractF32, n=aot.AbstractIndex):
        return i / 2, i + 0.5, i * x, n + i, n / 2

    def comparisons(self, i=aot.AbstractI32, x=aot.AbstractF32):
        return [i == 3, i != 3, i < x, 2 <= i, x > 0.5, (i >= 3) & (x < 1), (i > 9) | ~(x < 0)]

    def conversions(self, i=aot.AbstractI32, x=aot.AbstractF32, y=aot.AbstractF64):
        return [
            i.to(torch.float64), i.to(torch.int64), x.to(torch.int32), y.to(torch.float32),
            y.to(torch.int64), x.to(torch.float64), i.to(torch.bool), (i > 0).to(torch.float32),
        ]  # fmt: skip

    def of_tensor(self, x=aot.AbstractTensor(dtype=torch.bfloat16)):
        return x.item() + 1, x * 2


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Numbers), tmp_path_factory.mktemp("numbers"))


@pytest.mark.parametrize(("i", "j"), [(7, -8), (-3, 8), (2, 9)])
def test_integers_are_those_of_python(numbers: runtime.Executable, i: int, j: int) -> None:
    expected = {
        "+": i + 1, "r-": 10 - i, "*": i * j, "//": j // 3, "r//": 7 // i, "%": j % 3,
        "-": -i, "abs": abs(j), "~": ~i, "<<": i << 2, ">>": j >> 1, "^": i ^ 5,
    }  # fmt: skip
    assert numbers.integers(i, j) == expected


@pytest.mark.parametrize(("x", "y"), [(0.7, -1.25), (-0.8, 3.5)])
def test_floats_are_those_of_torch(numbers: runtime.Executable, x: float, y: float) -> None:
    t, w = torch.tensor(x), torch.tensor(y, dtype=torch.float64)
    expected = {
        "+": t + 1.5, "r/": 3 / t, "**": t**2, "//": t // 0.3, "%": t % 0.3,
        "wide": t + w, "y": w * 2, "clamp": t.clamp(0, 0.5), "-": -t, "abs": w.abs(),
    }  # fmt: skip
    assert_same(numbers.floats(x, y), {key: value.item() for key, value in expected.items()})


def test_integers_and_floats_mix_as_in_torch(numbers: runtime.Executable) -> None:
    assert_same(numbers.mixed(3, 0.5, 4), (1.5, 3.5, 1.5, 7, 2.0))


def test_comparisons_and_logic(numbers: runtime.Executable) -> None:
    assert numbers.comparisons(3, 0.75) == [True, False, False, True, True, True, True]
    assert numbers.comparisons(-1, -2.0) == [False, True, False, False, False, False, False]


def test_conversions_truncate_and_keep_width(numbers: runtime.Executable) -> None:
    assert numbers.conversions(-3, -2.75, 2.5) == [-3.0, -3, -2, 2.5, 2, -2.75, True, 0.0]


def test_the_item_of_a_narrow_float_is_a_float32(numbers: runtime.Executable) -> None:
    x = torch.tensor(1.5, dtype=torch.bfloat16)
    assert_same(numbers.of_tensor(x), (2.5, x * 2))


def test_operations_are_plain_arithmetic() -> None:
    check_ir(
        aot.export(Numbers),
        """
        CHECK: func.func @integers(%arg0: i32, %arg1: i64)
        CHECK: %c1_i32 = arith.constant 1 : i32
        CHECK: arith.addi %arg0, %c1_i32 : i32
        CHECK: arith.extsi %arg0 : i32 to i64
        CHECK: arith.floordivsi %arg1
        CHECK: func.func @floats(%arg0: f32, %arg1: f64)
        CHECK: math.powf
        CHECK: arith.extf %arg0 : f32 to f64
        """,
    )
