"""The MLIR of procedures: intrinsics, numbers, and operators and indexing of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pelton import aot
from tests.programs import check_ir

IREE, Tensor = aot.IREE, aot.AbstractTensor
INDEX, I32, I64 = aot.AbstractIndex, aot.AbstractI32, aot.AbstractI64
F32, F64 = aot.AbstractF32, aot.AbstractF64


def procedure(run: Callable[..., Any], **members: Any) -> aot.ExportOutput:
    """Export a class with one procedure and the members given."""
    return aot.export(type("Module", (aot.CompiledModule,), {**members, "run": run}))


# IREE.tensor_*


def test_tensor_dim_reads_unknown_sizes_and_knows_the_others() -> None:
    def run(self, x=Tensor(None, 4)):
        return IREE.tensor_dim(x, 0), IREE.tensor_dim(x, 1, dtype=torch.int32)

    check_ir(
        procedure(run),
        """
        CHECK: func.func @run(%arg0: tensor<?x4xf32>) -> (index, i32)
        CHECK-NEXT: %c0 = arith.constant 0 : index
        CHECK-NEXT: %[[ROWS:.*]] = tensor.dim %arg0, %c0 : tensor<?x4xf32>
        CHECK-NEXT: %[[FOUR:.*]] = arith.constant 4 : index
        CHECK-NEXT: %[[COLUMNS:.*]] = arith.index_cast %[[FOUR]] : index to i32
        CHECK-NEXT: return %[[ROWS]], %[[COLUMNS]]
        """,
    )


def test_tensor_empty_takes_sizes_as_operands() -> None:
    def run(self, n=INDEX):
        return IREE.tensor_empty(2, 3), IREE.tensor_empty(n, 3, dtype=torch.int8)

    check_ir(
        procedure(run),
        """
        CHECK: flow.tensor.empty : tensor<2x3xf32>
        CHECK-NEXT: flow.tensor.empty : tensor<?x3xi8>{%arg0}
        """,
    )


def test_tensor_splat_converts_narrow_types_behind_it() -> None:
    def run(self, n=INDEX, v=F32):
        return (
            IREE.tensor_splat(2, value=7, dtype=torch.int64),
            IREE.tensor_splat(n, 2, value=v, dtype=torch.float16),
        )

    check_ir(
        procedure(run),
        """
        CHECK: %c7_i64 = arith.constant 7 : i64
        CHECK-NEXT: flow.tensor.splat %c7_i64 : tensor<2xi64>
        CHECK-NEXT: %[[WIDE:.*]] = flow.tensor.splat %arg1 : tensor<?x2xf32>{%arg0}
        CHECK: call @to(%{{.*}}) : (!torch.vtensor<[?,2],f32>) -> !torch.vtensor<[?,2],f16>
        """,
    )


def test_tensor_reshape_infers_a_size_and_checks_the_count() -> None:
    def run(self, x=Tensor(None, 4), n=INDEX):
        return IREE.tensor_reshape(x, n, 2, -1)

    check_ir(
        procedure(run),
        """
        CHECK: %[[ROWS:.*]] = tensor.dim %arg0
        CHECK: %[[REST:.*]] = arith.floordivsi
        CHECK: arith.cmpi eq
        CHECK: scf.if
        CHECK: util.status.check_ok %c11_i32, "run(): float32[?, 4] cannot be reshaped to [?, 2, ?]:
        CHECK: flow.tensor.reshape %arg0 : tensor<?x4xf32>{%[[ROWS]]} ->
        CHECK-SAME: tensor<?x2x?xf32>{%arg1, %[[REST]]}
        """,
    )


def test_tensor_slice_of_constants_is_a_flow_slice_without_checks() -> None:
    def run(self, x=Tensor(4, 6)):
        return IREE.tensor_slice(x, 1, (2, 3))

    check_ir(
        procedure(run),
        """
        CHECK: func.func @run
        CHECK-NOT: util.status.check_ok
        CHECK: flow.tensor.slice %arg0[%c1, %c2 for %c1{{.*}}, %c3] : tensor<4x6xf32> ->
        CHECK-SAME: tensor<1x3xf32>
        """,
    )


def test_tensor_slice_of_several_runs_is_an_extract_slice_with_checks() -> None:
    def run(self, x=Tensor(4, 6), i=INDEX, n=INDEX):
        return IREE.tensor_slice(x, (i, n), (1, n))

    check_ir(
        procedure(run),
        """
        CHECK: %[[END:.*]] = arith.addi %arg1, %arg2 : index
        CHECK: arith.cmpi sge, %arg1, %c0
        CHECK: check_ok %c11_i32, "run(): a position before the start of dimension 0 of float32[4,
        CHECK-SAME: 6]
        CHECK: arith.cmpi sge, %arg2, %
        CHECK: "run(): a negative length in dimension 0 of float32[4, 6]
        CHECK: arith.cmpi sle, %[[END]], %c4 : index
        CHECK: "run(): a position beyond the end of dimension 0 of float32[4, 6]
        CHECK: "run(): a position beyond the end of dimension 1 of float32[4, 6]
        CHECK: tensor.extract_slice %arg0[%arg1, 1] [%arg2, %arg2] [1, 1]
        """,
    )


def test_tensor_update_of_one_run_and_of_several() -> None:
    def run(self, x=Tensor(4, 6), row=Tensor(1, 6), part=Tensor(2, 2), i=INDEX):
        return IREE.tensor_update(x, row, i, 0), IREE.tensor_update(x, part, i, 1)

    check_ir(
        procedure(run),
        """
        CHECK: flow.tensor.update %arg1, %arg0[%arg3, %{{.*}}] : tensor<1x6xf32> -> %arg0
        CHECK: tensor.insert_slice %arg2 into %arg0[%arg3, 1] [2, 2] [1, 1] : tensor<2x2xf32>
        """,
    )


def test_tensor_trace_prints_numbers_as_tensors() -> None:
    def run(self, x=Tensor(None), n=I64):
        IREE.tensor_trace("TITLE", x, n)
        return x

    check_ir(
        procedure(run),
        """
        CHECK: %[[SIZE:.*]] = tensor.dim %arg0
        CHECK: %[[NUMBER:.*]] = tensor.from_elements %arg1 : tensor<i64>
        CHECK: flow.tensor.trace "TITLE" = [%arg0 : tensor<?xf32>{%[[SIZE]]}, %[[NUMBER]] :
        """,
    )


# Numbers


def test_integers_are_arith_with_pythons_rounding() -> None:
    def run(self, i=I32, j=I64):
        return i + 1, j // 3, j % 3, -i, abs(j), ~i, i << 2, 7 - i

    check_ir(
        procedure(run),
        """
        CHECK: func.func @run(%arg0: i32, %arg1: i64) -> (i32, i64, i64, i32, i64, i32, i32, i32)
        CHECK: arith.addi %arg0, %c1_i32 : i32
        CHECK: arith.floordivsi %arg1, %c3_i64 : i64
        CHECK: %[[REST:.*]] = arith.remsi %arg1, %
        CHECK: arith.select %{{.*}}, %{{.*}}, %[[REST]] : i64
        CHECK: arith.subi %c0_i32, %arg0 : i32
        CHECK: arith.xori %arg0, %c-1_i32 : i32
        CHECK: arith.shli %arg0, %c2_i32 : i32
        CHECK: arith.subi %c7_i32, %arg0 : i32
        """,
    )


def test_floats_widen_and_are_computed_in_the_wider_type() -> None:
    def run(self, x=F32, y=F64):
        return x + y, 3 / x, x**2, x % 0.3

    check_ir(
        procedure(run),
        """
        CHECK: func.func @run(%arg0: f32, %arg1: f64) -> (f64, f32, f32, f32)
        CHECK: %[[WIDE:.*]] = arith.extf %arg0 : f32 to f64
        CHECK-NEXT: arith.addf %[[WIDE]], %arg1 : f64
        CHECK: %[[THREE:.*]] = arith.constant 3.000000e+00 : f32
        CHECK-NEXT: arith.divf %[[THREE]], %arg0 : f32
        CHECK: math.powf %arg0
        CHECK: arith.remf %arg0
        """,
    )


def test_integers_beside_floats_become_floats_and_beside_indices_indices() -> None:
    def run(self, i=I32, x=F32, n=INDEX):
        return i / 2, i * x, n + i

    check_ir(
        procedure(run),
        """
        CHECK: -> (f32, f32, index)
        CHECK: %[[I:.*]] = arith.sitofp %arg0 : i32 to f32
        CHECK: %[[TWO:.*]] = arith.sitofp %c2_i32 : i32 to f32
        CHECK: arith.divf %[[I]], %[[TWO]] : f32
        CHECK: arith.mulf %{{.*}}, %arg1 : f32
        CHECK: %[[INDEX:.*]] = arith.index_cast %arg0 : i32 to index
        CHECK: arith.addi %arg2, %[[INDEX]] : index
        """,
    )


def test_comparisons_are_signed_and_ordered() -> None:
    def run(self, i=I32, x=F32):
        return i == 3, i < x, (i >= 3) & (x != 1), (i > 9) | ~(x < 0)

    check_ir(
        procedure(run),
        """
        CHECK: -> (i1, i1, i1, i1)
        CHECK: arith.cmpi eq, %arg0, %c3_i32 : i32
        CHECK: arith.cmpf olt, %{{.*}}, %arg1 : f32
        CHECK: arith.cmpi sge, %arg0
        CHECK: arith.cmpf une, %arg1
        CHECK: arith.andi %{{.*}} : i1
        CHECK: arith.cmpi sgt, %arg0
        CHECK: arith.ori %{{.*}} : i1
        """,
    )


def test_conversions_of_numbers() -> None:
    def run(self, i=I32, x=F32, j=I64):
        return i.to(torch.int64), x.to(torch.int32), i.to(torch.bool), j.to(torch.int32)

    check_ir(
        procedure(run),
        """
        CHECK: -> (i64, i32, i1, i32)
        CHECK: arith.extsi %arg0 : i32 to i64
        CHECK: math.ceil %arg1 : f32
        CHECK: math.floor %arg1 : f32
        CHECK: %[[WHOLE:.*]] = arith.fptosi %{{.*}} : f32 to i64
        CHECK: arith.trunci %[[WHOLE]] : i64 to i32
        CHECK: arith.cmpi ne, %arg0, %c0_i32 : i32
        CHECK: arith.trunci %arg2 : i64 to i32
        """,
    )


def test_an_item_is_an_extract_and_of_a_narrow_float_a_float32() -> None:
    def run(self, x=Tensor(dtype=torch.bfloat16), y=Tensor(dtype=torch.int64)):
        return x.item(), y.item()

    check_ir(
        procedure(run),
        """
        CHECK: func.func @run(%arg0: tensor<bf16>, %arg1: tensor<i64>) -> (f32, i64)
        CHECK: call @to(%{{.*}}) : (!torch.vtensor<[],bf16>) -> !torch.vtensor<[],f32>
        CHECK: tensor.extract %{{.*}}[] : tensor<f32>
        CHECK: tensor.extract %arg1[] : tensor<i64>
        """,
    )


# Tensors


def test_an_operator_of_torch_is_a_call_of_a_private_function() -> None:
    def run(self, x=Tensor(None, 4), y=Tensor(4)):
        return x + y

    check_ir(
        procedure(run),
        """
        CHECK: func.func @run(%arg0: tensor<?x4xf32>, %arg1: tensor<4xf32>) -> tensor<?x4xf32>
        CHECK: %[[X:.*]] = torch_c.from_builtin_tensor %arg0 : tensor<?x4xf32> ->
        CHECK: %[[Y:.*]] = torch_c.from_builtin_tensor %arg1 : tensor<4xf32> ->
        CHECK: %[[SUM:.*]] = call @add(%[[X]], %[[Y]])
        CHECK: %[[RESULT:.*]] = torch_c.to_builtin_tensor %[[SUM]] : {{.*}} -> tensor<?x4xf32>
        CHECK: return %[[RESULT]]
        CHECK: func.func private @add(%arg0: !torch.vtensor<[?,4],f32>, %arg1:
        CHECK-SAME: !torch.vtensor<[4],f32>)
        CHECK: torch.symbolic_int "s{{[0-9]+}}" {min_val = 0, max_val = 9223372036854775807}
        CHECK: torch.aten.add.Tensor %arg0, %arg1, %int1
        """,
    )


def test_an_index_counts_from_the_end_is_checked_and_drops_a_dimension() -> None:
    def run(self, x=Tensor(5, 4), i=I64):
        return x[i]

    check_ir(
        procedure(run),
        """
        CHECK: %[[I:.*]] = arith.index_cast %arg1 : i64 to index
        CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[I]], %c0
        CHECK: %[[COUNTED:.*]] = arith.addi %[[I]], %c5
        CHECK: %[[PLACE:.*]] = arith.select %[[BELOW]], %[[COUNTED]], %[[I]] : index
        CHECK: arith.cmpi sge, %[[PLACE]]
        CHECK: "run(): index below the start of dimension 0 of float32[5, 4] (at
        CHECK-SAME: {{.*}}test_golden_ir.py:
        CHECK: arith.cmpi slt, %[[PLACE]]
        CHECK: "run(): index beyond the end of dimension 0 of float32[5, 4]
        CHECK: %[[ROW:.*]] = flow.tensor.slice %arg0[%[[PLACE]], %{{.*}} for %{{.*}}, %{{.*}}]
        CHECK: flow.tensor.reshape %[[ROW]] : tensor<1x4xf32> -> tensor<4xf32>
        """,
    )


def test_a_slice_is_shortened_to_the_dimension() -> None:
    def run(self, x=Tensor(None, 4), i=I64, n=I64):
        return x[i:n]

    check_ir(
        procedure(run),
        """
        CHECK: %[[SIZE:.*]] = tensor.dim %arg0
        CHECK-NOT: check_ok
        CHECK: arith.cmpi sgt, %{{.*}}, %[[SIZE]] : index
        CHECK: %[[START:.*]] = arith.select %{{.*}}, %[[SIZE]], %{{.*}} : index
        CHECK: %[[END:.*]] = arith.select %{{.*}}, %[[SIZE]], %{{.*}} : index
        CHECK: arith.subi %[[END]], %[[START]] : index
        CHECK: %[[LENGTH:.*]] = arith.select %{{.*}} : index
        CHECK: flow.tensor.slice %arg0[%[[START]], %{{.*}} for %[[LENGTH]], %{{.*}}] :
        CHECK-SAME: tensor<?x4xf32>{%[[SIZE]]} -> tensor<?x4xf32>{%[[LENGTH]]}
        """,
    )


def test_a_column_is_an_extract_slice() -> None:
    def run(self, x=Tensor(5, 4)):
        return x[:, 1], x[1:3]

    check_ir(
        procedure(run),
        """
        CHECK: %[[COLUMN:.*]] = tensor.extract_slice %arg0[0, 1] [5, 1] [1, 1] : tensor<5x4xf32>
        CHECK: flow.tensor.reshape %[[COLUMN]] : tensor<5x1xf32> -> tensor<5xf32>
        CHECK: flow.tensor.slice %arg0[{{.*}}] : tensor<5x4xf32> -> tensor<2x4xf32>
        """,
    )


def test_assigning_to_a_part_updates_the_whole() -> None:
    def run(self, x=Tensor(5, 4), v=Tensor(4)):
        y = x * 1
        y[2] = v
        y[0, 1] = 7
        return y

    check_ir(
        procedure(run),
        """
        CHECK: %[[Y:.*]] = torch_c.to_builtin_tensor
        CHECK: %[[ROW:.*]] = flow.tensor.reshape %arg1 : tensor<4xf32> -> tensor<1x4xf32>
        CHECK: %[[FIRST:.*]] = flow.tensor.update %[[ROW]], %[[Y]][%c2, %{{.*}}] : tensor<1x4xf32>
        CHECK: %[[NUMBER:.*]] = flow.tensor.splat %{{.*}} : tensor<1x1xf32>
        CHECK: %[[SECOND:.*]] = flow.tensor.update %[[NUMBER]], %[[FIRST]]
        CHECK: return %[[SECOND]]
        """,
    )
