"""The MLIR of traced programs: types, sizes, constants, weights and locations."""

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


# Parameters and buffers


class Weights(nn.Module):
    """Tensors of several kinds, of which two change."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 3, bias=False)
        self.tied = nn.Linear(2, 3, bias=False)
        self.tied.weight = self.layer.weight
        self.register_buffer("gain", torch.tensor(2.5))
        self.register_buffer("mask", torch.tensor([True, False, True]))
        self.register_buffer("bytes", torch.tensor([1, 2, 3], dtype=torch.uint8))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("seen", torch.zeros(3, dtype=torch.bool))

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x) * self.gain * self.mask + self.bytes + self.scratch + self.tied(x)
        self.count.add_(y)
        self.seen.logical_or_(y > 0)
        return self.count * 2


@pytest.fixture(scope="module")
def weights() -> aot.ExportOutput:
    return aot.export(Weights().eval(), args=(tensor(2),))


def test_tensors_of_a_module_are_globals_by_their_keys(weights: aot.ExportOutput) -> None:
    check_ir(
        weights,
        """
        CHECK-DAG: util.global private @__auto.layer.weight = {{.*}} : tensor<3x2xf32>
        CHECK-DAG: util.global private @__auto.gain = dense<2.500000e+00> : tensor<f32>
        CHECK-DAG: util.global private @__auto.mask {pelton.dtype = "bool"} = {{.*}} : tensor<3xi8>
        CHECK-DAG: @__auto.bytes {pelton.dtype = "uint8"} = {{.*}} : tensor<3xi8>
        CHECK-DAG: util.global private @__auto.scratch = dense_resource
        CHECK-DAG: util.global private mutable @__auto.count = dense_resource
        CHECK-DAG: util.global private mutable @__auto.seen {pelton.dtype = "bool"} =
        """,
    )
    assert "@__auto.tied" not in str(weights.mlir_module)


def test_loads_convert_from_what_globals_store(weights: aot.ExportOutput) -> None:
    check_ir(
        weights,
        """
        CHECK: %[[W:.*]] = util.global.load @__auto.layer.weight : tensor<3x2xf32>
        CHECK-NEXT: torch_c.from_builtin_tensor %[[W]] : tensor<3x2xf32> ->
        CHECK-SAME: !torch.vtensor<[3,2],f32>
        CHECK: %[[MASK:.*]] = util.global.load @__auto.mask : tensor<3xi8>
        CHECK-NEXT: %[[SIGNED:.*]] = torch_c.from_builtin_tensor %[[MASK]] : tensor<3xi8> ->
        CHECK-SAME: !torch.vtensor<[3],si8>
        CHECK: torch.aten.ne.Scalar %[[SIGNED]], %{{.*}} -> !torch.vtensor<[3],i1>
        CHECK: %[[BYTES:.*]] = util.global.load @__auto.bytes : tensor<3xi8>
        CHECK-NEXT: torch_c.from_builtin_tensor %[[BYTES]] : tensor<3xi8> -> !torch.vtensor<[3],ui8>
        """,
    )


def test_changed_buffers_are_loaded_before_all_else_and_stored_at_the_end(
    weights: aot.ExportOutput,
) -> None:
    check_ir(
        weights,
        """
        CHECK: func.func @main
        CHECK-NEXT: util.global.load @__auto.count
        CHECK: util.global.load @__auto.seen
        CHECK: util.global.load @__auto.layer.weight
        CHECK: %[[BYTES:.*]] = torch.prims.convert_element_type %{{.*}} : !torch.vtensor<[3],i1>,
        CHECK-SAME: !torch.int -> !torch.vtensor<[3],si8>
        CHECK: torch_c.to_builtin_tensor %[[BYTES]] : !torch.vtensor<[3],si8> -> tensor<3xi8>
        CHECK-NEXT: util.global.store %{{.*}}, @__auto.seen : tensor<3xi8>
        CHECK-NOT: torch.
        CHECK: return
        """,
    )


def test_counters_of_a_batch_norm_in_training() -> None:
    with pytest.warns(UserWarning, match="training mode"):
        out = aot.export(nn.BatchNorm1d(4).train(), args=(tensor(3, 4),))
    check_ir(
        out,
        """
        CHECK-DAG: util.global private mutable @__auto.running_mean
        CHECK-DAG: util.global private mutable @__auto.running_var
        CHECK-DAG: util.global private mutable @__auto.num_batches_tracked = dense<0> : tensor<i64>
        CHECK-DAG: util.global.store %{{.*}}, @__auto.running_mean
        CHECK-DAG: util.global.store %{{.*}}, @__auto.running_var
        CHECK-DAG: util.global.store %{{.*}}, @__auto.num_batches_tracked
        """,
    )


def test_unused_tensors_have_no_global() -> None:
    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x)

    out = aot.export(Partly(), args=(tensor(2),))
    check_ir(out, "CHECK: @__auto.used.weight")
    assert "unused" not in str(out.mlir_module)


# External parameters


def test_external_parameters_are_named_by_scope_and_key() -> None:
    check_ir(
        aot.export(Weights().eval(), args=(tensor(2),), external_parameters=True),
        """
        CHECK-DAG: @__auto.layer.weight = #flow.parameter.named<"model"::"layer.weight"> :
        CHECK-DAG: @__auto.gain = #flow.parameter.named<"model"::"gain"> : tensor<f32>
        CHECK-DAG: @__auto.mask {pelton.dtype = "bool"} = #flow.parameter.named<"model"::"mask">
        CHECK-DAG: @__auto.count = #flow.parameter.named<"model"::"count"> : tensor<3xf32>
        CHECK-DAG: util.global private @__auto.scratch = dense_resource
        """,
    )


def test_external_parameters_of_a_scope_and_by_choice() -> None:
    net = nn.Linear(2, 2)
    check_ir(
        aot.export(net, args=(tensor(2),), external_parameters="weights"),
        """
        CHECK-DAG: #flow.parameter.named<"weights"::"weight">
        CHECK-DAG: #flow.parameter.named<"weights"::"bias">
        """,
    )
    check_ir(
        aot.export(net, args=(tensor(2),), external_parameters=lambda key: key == "bias"),
        """
        CHECK-DAG: @__auto.weight = dense_resource<
        CHECK-DAG: @__auto.bias = #flow.parameter.named<"model"::"bias"> : tensor<2xf32>
        """,
    )


def test_a_module_with_a_scope_and_prefix_of_its_own() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    aot.externalize_module_parameters(net[1], external_scope="head", prefix="h")
    check_ir(
        aot.export(net, args=(tensor(2),)),
        """
        CHECK-DAG: @__auto.0.weight = dense_resource<
        CHECK-DAG: @__auto.1.weight = #flow.parameter.named<"head"::"h.weight"> : tensor<2x2xf32>
        CHECK-DAG: @__auto.1.bias = #flow.parameter.named<"head"::"h.bias"> : tensor<2xf32>
        """,
    )


# Several programs, devices, locations


def test_programs_of_one_module_share_its_globals() -> None:
    programs = aot.FxProgramsBuilder(Weights().eval())
    programs.export_program(lambda module: module.count * 1, name="read", strict=False)
    programs.export_program(
        lambda module, x: module(x), args=(tensor(2),), name="add", strict=False
    )
    out = aot.export(programs)
    check_ir(
        out,
        """
        CHECK: util.global private mutable @__auto.count
        CHECK: func.func @read() -> !torch.vtensor<[3],f32>
        CHECK-NEXT: util.global.load @__auto.count
        CHECK: func.func @add(%arg0: !torch.vtensor<[2],f32>)
        CHECK: util.global.store %{{.*}}, @__auto.count
        """,
    )
    assert str(out.mlir_module).count("mutable @__auto.count ") == 1


def test_an_exported_program_keeps_its_own_names() -> None:
    program = torch.export.export(nn.Sequential(nn.Linear(2, 2)), (torch.ones(1, 2),))
    check_ir(
        aot.export(program, function_name="linear"),
        """
        CHECK-DAG: util.global private @__auto.0.weight
        CHECK-DAG: util.global private @__auto.0.bias
        CHECK: func.func @linear(%arg0: !torch.vtensor<[1,2],f32>) -> !torch.vtensor<[1,2],f32>
        """,
    )


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
