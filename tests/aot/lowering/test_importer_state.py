"""The MLIR of traced programs: parameters, buffers, and programs that share them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from pelton import aot
from tests.programs import check_ir


def tensor(*shape: int) -> aot.InputInfo:
    return aot.InputInfo(shape, torch.float32)


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


# Several programs


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
