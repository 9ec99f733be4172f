"""Custom operators as functions made of their bodies, and calls of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.custom_ops import custom_op, register_body, trace_tensor, transfer_to_device
from tests.programs import check_ir

ROWS = aot.NamedDimension("rows", 2, 4, 16)
X, GATE = aot.InputInfo((ROWS, 4), torch.float32), aot.InputInfo((4,), torch.float32)

SCALED = custom_op(
    "testing::ir_scaled(Tensor x, Tensor gate, float slope=1.0) -> Tensor",
    shapes="... d, d -> ... d",
    body="""
        %factor = arith.truncf %slope : f64 to ${x.element}
        %empty = tensor.empty(${result.sizes}) : $result
        %0 = linalg.generic {
            indexing_maps = [${x.map}, ${gate.map}, ${result.map}], iterator_types = $iterators
        } ins(%x, %gate : $x, $gate) outs(%empty : $result) {
        ^bb0(%a: ${x.element}, %b: ${gate.element}, %out: ${result.element}):
          %c = arith.mulf %a, %b : ${x.element}
          %d = arith.mulf %c, %factor : ${x.element}
          linalg.yield %d : ${x.element}
        } -> $result
        return %0 : $result
    """,
    eager=lambda x, gate, slope=1.0: x * gate * slope,
)


def scaled(*slopes: float) -> aot.ExportOutput:
    """Return a program that scales once for each slope."""

    def program(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        for slope in slopes:
            x = SCALED(x, gate, slope)
        return x

    return aot.export(program, args=(X, GATE))


def test_an_operator_is_a_call_with_tensors_of_dynamic_sizes() -> None:
    check_ir(
        scaled(2.0),
        """
        CHECK-NOT: torch.operator
        CHECK: %[[X:.*]] = torch_c.to_builtin_tensor %arg0 : {{.*}} -> tensor<?x4xf32>
        CHECK-NEXT: %[[X_CAST:.*]] = tensor.cast %[[X]] : tensor<?x4xf32> to tensor<?x?xf32>
        CHECK-NEXT: %[[GATE:.*]] = torch_c.to_builtin_tensor %arg1 : {{.*}} -> tensor<4xf32>
        CHECK-NEXT: %[[GATE_CAST:.*]] = tensor.cast %[[GATE]] : tensor<4xf32> to tensor<?xf32>
        CHECK-NEXT: %[[CALL:.*]] = call @testing.ir_scaled(%[[X_CAST]], %[[GATE_CAST]])
        CHECK-NEXT: %[[RESULT:.*]] = tensor.cast %[[CALL]] : tensor<?x?xf32> to tensor<?x4xf32>
        CHECK-NEXT: torch_c.from_builtin_tensor %[[RESULT]] : tensor<?x4xf32> ->
        CHECK: return
        """,
    )


def test_a_body_is_a_private_function_that_names_its_operator() -> None:
    check_ir(
        scaled(2.0),
        """
        CHECK: func.func private @testing.ir_scaled(%arg0: tensor<?x?xf32>, %arg1: tensor<?xf32>) ->
        CHECK-SAME: tensor<?x?xf32> attributes {pelton.custom_op = "testing::ir_scaled"}
        CHECK: %[[SLOPE:.*]] = arith.constant 2.000000e+00 : f64
        CHECK: %[[EMPTY:.*]] = tensor.empty(%{{.*}}, %{{.*}}) : tensor<?x?xf32>
        CHECK: linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel",
        CHECK-SAME: ins(%arg0, %arg1 : tensor<?x?xf32>, tensor<?xf32>) outs(%[[EMPTY]] :
        """,
    )


def test_sizes_of_arguments_and_results_are_checked_in_the_body() -> None:
    check_ir(
        scaled(2.0),
        """
        CHECK: func.func private @testing.ir_scaled
        CHECK: %[[D:.*]] = tensor.dim %arg0, %c1
        CHECK: %[[GIVEN:.*]] = tensor.dim %arg1, %c0
        CHECK: %[[EQUAL:.*]] = arith.cmpi eq, %[[GIVEN]], %[[D]] : index
        CHECK: %[[WRONG:.*]] = arith.xori %[[EQUAL]], %true
        CHECK: scf.if %[[WRONG]] {
        CHECK: check_ok %c11_i32, "custom operator testing::ir_scaled: size 0 of gate must be d"
        CHECK: %[[RESULT:.*]] = linalg.generic
        CHECK: tensor.dim %[[RESULT]]
        CHECK: "custom operator testing::ir_scaled: its body returned another size than d0"
        CHECK: "custom operator testing::ir_scaled: its body returned another size than d"
        CHECK: return %[[RESULT]]
        """,
    )


def test_calls_with_the_same_constants_share_a_function() -> None:
    out = scaled(2.0, 3.0, 2.0)
    check_ir(
        out,
        """
        CHECK: call @testing.ir_scaled(
        CHECK: call @testing.ir_scaled$1(
        CHECK: call @testing.ir_scaled(
        CHECK: func.func private @testing.ir_scaled(
        CHECK: func.func private @testing.ir_scaled$1(
        CHECK: arith.constant 3.000000e+00 : f64
        """,
    )
    assert str(out.mlir_module).count("func.func private") == 2


@pytest.mark.parametrize(
    ("dtype", "element"),
    [(torch.float16, "f16"), (torch.bfloat16, "bf16")],
)
def test_fields_of_a_body_are_the_types_of_the_call(dtype: torch.dtype, element: str) -> None:
    x, gate = aot.InputInfo((2, 3, 4), dtype), aot.InputInfo((4,), dtype)
    check_ir(
        aot.export(lambda x, gate: SCALED(x, gate), args=(x, gate)),
        f"""
        CHECK: func.func private @testing.ir_scaled(%arg0: tensor<?x?x?x{element}>,
        CHECK: arith.constant 1.000000e+00 : {element}
        CHECK: iterator_types = ["parallel", "parallel", "parallel"]
        CHECK: arith.mulf %{{{{.*}}}} : {element}
        """,
    )


@torch.library.custom_op("testing::ir_moved", mutates_args=())
def moved(x: torch.Tensor, y: torch.Tensor, shift: int) -> tuple[torch.Tensor, torch.Tensor]:
    return x + shift, (x > y).clone()


@moved.register_fake
def _(x: torch.Tensor, y: torch.Tensor, shift: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)


register_body(
    moved,
    """
    %n = flow.tensor.splat %shift : tensor<?xi64>{${x.sizes}}
    %0 = arith.addi %x, %n : $x
    %1 = arith.cmpi sgt, %x, %y : $x
    return %0, %1 : $result0, $result1
    """,
    shapes="n, n -> n, n",
)


def test_several_results_of_other_types() -> None:
    x = aot.InputInfo((ROWS,), torch.int64)
    check_ir(
        aot.export(lambda x, y: moved(x, y, 3), args=(x, x)),
        """
        CHECK: %[[CALL:.*]]:2 = call @testing.ir_moved(%{{.*}}, %{{.*}}) : (tensor<?xi64>,
        CHECK-SAME: tensor<?xi64>) -> (tensor<?xi64>, tensor<?xi1>)
        CHECK: torch_c.from_builtin_tensor %[[CALL]]#0 : tensor<?xi64> -> !torch.vtensor<[?],si64>
        CHECK: torch_c.from_builtin_tensor %[[CALL]]#1 : tensor<?xi1> -> !torch.vtensor<[?],i1>
        CHECK: func.func private @testing.ir_moved(
        CHECK: "custom operator testing::ir_moved: size 0 of y must be n"
        CHECK: %c3_i64 = arith.constant 3 : i64
        CHECK: flow.tensor.splat %c3_i64 : tensor<?xi64>{%
        """,
    )


def test_a_number_of_the_call_is_an_argument_of_the_body() -> None:
    x = aot.InputInfo((ROWS,), torch.int64)
    check_ir(
        aot.export(lambda x, n: moved(x, x, n), args=(x, aot.DimensionInputInfo((1, 2, 3)))),
        """
        CHECK: %[[N:.*]] = torch_c.to_i64 %arg1
        CHECK: call @testing.ir_moved(%{{.*}}, %{{.*}}, %[[N]]) : (tensor<?xi64>, tensor<?xi64>,
        CHECK-SAME: i64)
        CHECK: func.func private @testing.ir_moved(%arg0: tensor<?xi64>, %arg1: tensor<?xi64>,
        CHECK-SAME: %arg2: i64)
        CHECK: flow.tensor.splat %arg2 : tensor<?xi64>
        """,
    )


@torch.library.custom_op("testing::ir_shapeless", mutates_args=())
def shapeless(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@shapeless.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


register_body(shapeless, "return %x : $x")


def test_known_sizes_are_checked_at_the_call_where_no_shapes_are_stated() -> None:
    check_ir(
        aot.export(lambda x: shapeless(x), args=(aot.InputInfo((3, ROWS), torch.float32),)),
        """
        CHECK: %[[CALL:.*]] = call @testing.ir_shapeless(
        CHECK: %[[SIZE:.*]] = tensor.dim %[[CALL]], %c0
        CHECK: arith.cmpi eq, %[[SIZE]], %c3
        CHECK: "custom operator testing::ir_shapeless: size 0 of what its body returned is not 3"
        CHECK-NOT: check_ok
        CHECK: func.func private @testing.ir_shapeless(
        CHECK-NEXT: return %arg0 : tensor<?x?xf32>
        """,
    )


def test_operators_that_come_with_pelton() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        trace_tensor("title", x)
        return transfer_to_device(x, aot.DeviceAffinity(1, [0, 1]))

    check_ir(
        aot.export(program, args=(X,)),
        """
        CHECK: call @pelton.trace_tensor(%{{.*}}) : (tensor<?x?xf32>) -> ()
        CHECK: call @pelton.transfer_to_device(%{{.*}}) : (tensor<?x?xf32>) -> tensor<?x?xf32>
        CHECK: func.func private @pelton.trace_tensor(%arg0: tensor<?x?xf32>)
        CHECK: flow.tensor.trace "title" = [%arg0 : tensor<?x?xf32>{%{{.*}}, %{{.*}}}]
        CHECK: func.func private @pelton.transfer_to_device(
        CHECK: flow.tensor.transfer %arg0 : tensor<?x?xf32>{%{{.*}}, %{{.*}}} to
        CHECK-SAME: #hal.device.promise<@__device_1, [0, 1]>
        """,
    )


# Phases


def test_lowering_leaves_neither_torch_nor_bodies() -> None:
    out = scaled(2.0)
    out.import_to("full")
    check_ir(
        out,
        """
        CHECK-NOT: torch.aten
        CHECK: util.func public @main$async(%arg0: !hal.buffer_view, %arg1: !hal.buffer_view,
        CHECK: linalg.generic
        CHECK: hal.tensor.export
        CHECK: util.func public @main(
        CHECK-SAME: iree.reflection = {
        CHECK-SAME: pelton.signature =
        CHECK-NOT: testing.ir_scaled
        """,
    )


@pytest.mark.parametrize("phase", [None, "import", "torch_ir", aot.ImportPhase.CUSTOM_OP_EXPANSION])
def test_earlier_phases_leave_an_exported_module_as_it_is(phase: Any) -> None:
    out = scaled(2.0)
    before = str(out.mlir_module)
    out.import_to(phase)
    assert str(out.mlir_module) == before
    check_ir(out, "CHECK: torch.symbolic_int")
