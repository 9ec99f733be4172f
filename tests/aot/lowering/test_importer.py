"""The MLIR of traced programs: types, sizes, constants and locations."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pelton import aot
from tests.programs import check_ir, check_text

ROWS = aot.NamedDimension("rows", 2, 4, 16)
TYPES = {
    "bool": "i1", "int8": "si8", "uint8": "ui8", "int16": "si16", "int32": "si32", "int64": "si64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "complex<f32>", "complex128": "complex<f64>", "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2", "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2fnuz": "f8E5M2FNUZ",
}  # fmt: skip


def tensor(*shape: Any, dtype: torch.dtype = torch.float32) -> aot.InputInfo:
    return aot.InputInfo(shape, dtype)


# Arguments and results


@pytest.mark.parametrize("name", TYPES)
def test_arguments_and_results_have_the_torch_type_of_their_dtype(name: str) -> None:
    value = f"!torch.vtensor<[2,3],{TYPES[name]}>"
    check_ir(
        aot.export(lambda x: x.clone(), args=(tensor(2, 3, dtype=getattr(torch, name)),)),
        f"""
        CHECK: func.func @main(%arg0: {value}) -> {value}
        CHECK: %[[COPY:.*]] = torch.aten.clone %arg0, %none : {value}, !torch.none -> {value}
        CHECK-NEXT: return %[[COPY]] : {value}
        """,
    )


def test_tensors_of_rank_zero_and_of_no_elements() -> None:
    check_ir(
        aot.export(lambda x, y: (x * 2, y), args=(tensor(), tensor(0, 3))),
        """
        CHECK: func.func @main(%arg0: !torch.vtensor<[],f32>, %arg1: !torch.vtensor<[0,3],f32>)
        CHECK-SAME: -> (!torch.vtensor<[],f32>, !torch.vtensor<[0,3],f32>)
        """,
    )


def test_a_size_input_is_an_int_with_its_range() -> None:
    check_ir(
        aot.export(lambda x, n: x[:n], args=(tensor(8), aot.DimensionInputInfo((1, 2, 4)))),
        """
        CHECK: func.func @main(%arg0: !torch.vtensor<[8],f32>, %arg1: !torch.int)
        CHECK-SAME: -> !torch.vtensor<[?],f32>
        CHECK: torch.symbolic_int "s{{[0-9]+}}" {min_val = 1, max_val = 4} : !torch.int
        CHECK: torch.aten.slice.Tensor %arg0, %{{.*}}, %{{.*}}, %arg1, %
        """,
    )


def test_constants_and_none_are_no_arguments() -> None:
    def program(tree: dict[str, Any], nothing: None, count: int = 2) -> Any:
        return {"scaled": tree["x"] * count, "nothing": nothing, "given": tree["x"]}

    check_ir(
        aot.export(program, args=({"x": tensor(3), "text": "a"}, None, 5)),
        """
        CHECK: func.func @main(%arg0: !torch.vtensor<[3],f32>)
        CHECK-SAME: -> (!torch.vtensor<[3],f32>, !torch.vtensor<[3],f32>)
        CHECK: %int5 = torch.constant.int 5
        CHECK-NEXT: %[[SCALED:.*]] = torch.aten.mul.Scalar %arg0, %int5
        CHECK-NEXT: return %[[SCALED]], %arg0 :
        """,
    )


def test_a_program_without_arguments() -> None:
    check_ir(
        aot.export(lambda: torch.ones(2)),
        """
        CHECK: func.func @main() -> !torch.vtensor<[2],f32>
        CHECK: %[[ONES:.*]] = torch.aten.ones
        CHECK-NEXT: return %[[ONES]]
        """,
    )


def test_arguments_are_returned_as_they_are_in_any_order() -> None:
    check_ir(
        aot.export(lambda x, y: (y, x, y), args=(tensor(2), tensor(3))),
        "CHECK: return %arg1, %arg0, %arg1 :",
    )


def test_an_operator_of_several_results() -> None:
    check_ir(
        aot.export(lambda x: x.max(1), args=(tensor(3, 4),)),
        """
        CHECK: -> (!torch.vtensor<[3],f32>, !torch.vtensor<[3],si64>)
        CHECK: %values, %indices = torch.aten.max.dim %arg0, %int1, %false
        CHECK-SAME: -> !torch.vtensor<[3],f32>, !torch.vtensor<[3],si64>
        CHECK-NEXT: return %values, %indices :
        """,
    )


def test_names_of_the_module_and_of_the_function() -> None:
    check_ir(
        aot.export(nn.ReLU(), args=(tensor(2),), module_name="net", function_name="infer"),
        """
        CHECK: module @net {
        CHECK-NEXT: func.func @infer(
        CHECK-SAME: \\22name\\22:\\22infer\\22
        """,
    )


def test_lists_of_tensors_and_of_numbers_and_absent_operands() -> None:
    check_ir(
        aot.export(lambda x: torch.stack([x, x]).sum((0, 1)), args=(tensor(2),)),
        """
        CHECK: torch.prim.ListConstruct %{{.*}} : (!torch.vtensor<{{.*}}>) -> !torch.list<vtensor>
        CHECK: %[[AXES:.*]] = torch.prim.ListConstruct %int0{{.*}}, %int1
        CHECK-SAME: : (!torch.int, !torch.int) -> !torch.list<int>
        CHECK: %[[NONE:.*]] = torch.constant.none
        CHECK: torch.aten.sum.dim_IntList %{{.*}}, %[[AXES]], %false, %[[NONE]] :
        """,
    )


# Sizes that vary


def test_sizes_of_a_name_are_one_symbol_with_its_range() -> None:
    check_ir(
        aot.export(lambda x, y: torch.cat([x, y])[1:], args=(tensor(ROWS, 3), tensor(ROWS, 3))),
        """
        CHECK: func.func @main(%arg0: !torch.vtensor<[?,3],f32>, %arg1: !torch.vtensor<[?,3],f32>)
        CHECK-SAME: torch.assume_strict_symbolic_shapes
        CHECK-NEXT: %[[N:.*]] = torch.symbolic_int "s{{[0-9]+}}" {min_val = 2, max_val = 16}
        CHECK-NEXT: torch.bind_symbolic_shape %arg0, [%[[N]]], affine_map<()[s0] -> (s0, 3)>
        CHECK-NEXT: torch.bind_symbolic_shape %arg1, [%[[N]]], affine_map<()[s0] -> (s0, 3)>
        CHECK-NOT: torch.symbolic_int
        CHECK: torch.aten.cat
        CHECK-NEXT: torch.bind_symbolic_shape %{{.*}}, [%[[N]]], affine_map<()[s0] -> (s0 * 2, 3)>
        CHECK: torch.aten.slice.Tensor
        CHECK-NEXT: torch.bind_symbolic_shape {{.*}}affine_map<()[s0] -> (s0 * 2 - 1, 3)>
        """,
    )


def test_a_size_derived_from_another_is_an_expression() -> None:
    n = torch.export.Dim("n", min=2, max=32)
    out = aot.export(
        lambda x, y: y[: x.shape[0]] + x,
        args=(torch.ones(3), torch.ones(6)),
        dynamic_shapes={"x": {0: n}, "y": {0: 2 * n}},
    )
    check_ir(
        out,
        """
        CHECK: %[[N:.*]] = torch.symbolic_int "s{{[0-9]+}}" {min_val = 2, max_val = 32}
        CHECK: torch.bind_symbolic_shape %arg0, [%[[N]]], affine_map<()[s0] -> (s0)>
        CHECK: torch.bind_symbolic_shape %arg1, [%[[N]]], affine_map<()[s0] -> (s0 * 2)>
        CHECK: %[[SIZE:.*]] = torch.aten.size.int %arg0, %int0
        CHECK: torch.aten.slice.Tensor %arg1, %{{.*}}, %none, %[[SIZE]], %int1
        """,
    )


def test_symbolic_expressions_can_be_left_out() -> None:
    check_ir(
        aot.export(lambda x: x + 1, args=(tensor(ROWS),), import_symbolic_shape_expressions=False),
        """
        CHECK: func.func @main(%arg0: !torch.vtensor<[?],f32>)
        CHECK-NOT: torch.symbolic_int
        CHECK-NOT: torch.bind_symbolic_shape
        CHECK: return
        """,
    )


def test_arithmetic_on_sizes_is_on_ints() -> None:
    check_ir(
        aot.export(lambda x: torch.full((x.shape[0] * 2 + 1,), x.shape[0]), args=(tensor(ROWS),)),
        """
        CHECK: %[[SIZE:.*]] = torch.aten.size.int %arg0, %int0
        CHECK: %[[TWICE:.*]] = torch.aten.mul.int %[[SIZE]], %int2
        CHECK: %[[MORE:.*]] = torch.aten.add.int %[[TWICE]], %int1
        CHECK: torch.prim.ListConstruct %[[MORE]]
        CHECK: torch.aten.full
        """,
    )


# Constants


def test_a_small_constant_is_a_literal() -> None:
    out = aot.export(lambda x: x + torch.tensor([1.0, 2.0, 3.0]), args=(tensor(3),))
    check_ir(
        out,
        """
        CHECK-NOT: util.global
        CHECK: %[[C:.*]] = torch.vtensor.literal(dense_resource<torch_tensor_3_torch.float32> :
        CHECK-SAME: tensor<3xf32>)
        CHECK-SAME: : !torch.vtensor<[3],f32>
        CHECK: torch.aten.clone %[[C]]
        CHECK: torch_tensor_3_torch.float32: "0x040000000000803F0000004000004040"
        """,
    )


NUMBER, LARGE, FLAGS = torch.tensor(3), torch.arange(1025.0), torch.tensor([True, False])


def test_a_constant_of_one_element_is_a_splat() -> None:
    check_ir(
        aot.export(lambda x: x + NUMBER, args=(tensor(3),)),
        "CHECK: torch.vtensor.literal(dense<3> : tensor<si64>) : !torch.vtensor<[],si64>",
    )


def test_a_large_constant_is_a_global_which_all_uses_share() -> None:
    check_ir(
        aot.export(lambda x: (x + LARGE, x * LARGE), args=(tensor(1),)),
        """
        CHECK: util.global private @__auto.constant_1025_torch.float32 =
        CHECK-SAME: dense_resource<torch_tensor_1025_torch.float32>
        CHECK-NOT: util.global private
        CHECK: %[[LOADED:.*]] = util.global.load @__auto.constant_1025_torch.float32 :
        CHECK-SAME: tensor<1025xf32>
        CHECK-NEXT: %[[C:.*]] = torch_c.from_builtin_tensor %[[LOADED]] : tensor<1025xf32> ->
        CHECK-SAME: !torch.vtensor<[1025],f32>
        CHECK-NOT: util.global.load
        CHECK: torch.aten.add.Tensor %arg0, %[[C]]
        CHECK: torch.aten.mul.Tensor %arg0, %[[C]]
        """,
    )


def test_the_most_elements_of_a_literal() -> None:
    most = LARGE[:1024].clone()
    out = aot.export(lambda x: x + most, args=(tensor(1),))
    check_ir(out, "CHECK-NOT: util.global")


def test_a_constant_of_bools_is_a_global_of_bytes() -> None:
    check_ir(
        aot.export(lambda x: x.where(FLAGS, 0), args=(tensor(2),)),
        """
        CHECK: util.global private @__auto.constant_2_torch.bool {pelton.dtype = "bool"}
        CHECK-SAME: dense_resource<torch_tensor_2_torch.bool> : tensor<2xi8>
        CHECK: %[[BYTES:.*]] = torch_c.from_builtin_tensor %{{.*}} : tensor<2xi8> ->
        CHECK-SAME: !torch.vtensor<[2],si8>
        CHECK: %[[BOOLS:.*]] = torch.aten.ne.Scalar %[[BYTES]], %int0 {{.*}} ->
        CHECK-SAME: !torch.vtensor<[2],i1>
        CHECK: torch.aten.where.ScalarOther %[[BOOLS]], %arg0
        CHECK: torch_tensor_2_torch.bool: "0x010000000100"
        """,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bfloat16", "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xbf16>"),
        ("float8_e5m2", "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf8E5M2>"),
        ("float16", "dense_resource<torch_tensor_2_torch.float16> : tensor<2xf16>"),
        ("float64", "dense_resource<torch_tensor_2_torch.float64> : tensor<2xf64>"),
        ("int8", "dense_resource<torch_tensor_2_torch.int8> : tensor<2xi8>"),
        ("complex64", "dense_resource<torch_tensor_2_torch.complex64> : tensor<2xcomplex<f32>>"),
    ],
)
def test_small_constants_of_other_types_are_globals(name: str, value: str) -> None:
    constant = torch.tensor([1, 2]).to(getattr(torch, name))
    check_ir(
        aot.export(lambda x: (x, constant.clone()), args=(tensor(2),)),
        f"CHECK: util.global private @__auto.constant_2_torch.{name} = {value}",
    )


def test_numbers_are_exact_in_the_text() -> None:
    check_ir(
        aot.export(lambda x: x * 0.1 + 2**40, args=(tensor(2),)),
        """
        CHECK: torch.constant.float 1.000000e-01
        CHECK: torch.aten.mul.Scalar %arg0
        CHECK: torch.constant.int 1099511627776
        """,
    )


# Locations


def located(x: Tensor) -> Tensor:
    return torch.relu(x + 1)


def test_operations_carry_the_users_line() -> None:
    out = aot.export(located, args=(tensor(2),))
    line = inspect.getsourcelines(located)[1] + 1
    check_text(
        out.mlir_module.get_asm(enable_debug_info=True),
        f"""
        CHECK: torch.aten.add.Scalar {{{{.*}}}} loc(#[[PLACE:.*]])
        CHECK: torch.aten.relu {{{{.*}}}} loc(#[[PLACE]])
        CHECK: #[[PLACE]] = loc("{__file__}":{line}:0)
        """,
    )


def test_operations_without_a_line_of_the_user_carry_the_name_of_the_function() -> None:
    out = aot.export(nn.Sequential(nn.ReLU()), args=(tensor(2),), function_name="infer")
    check_text(
        out.mlir_module.get_asm(enable_debug_info=True),
        """
        CHECK: func.func @infer(%arg0: !torch.vtensor<[2],f32> loc("<infer>":0:0))
        CHECK: torch.aten.relu %arg0
        """,
    )
