"""Globals as they are declared, and what entry points state about themselves."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot
from tests.programs import check_ir

NUMBERS = torch.arange(3.0)


def exported_globals(**declared: Any) -> aot.ExportOutput:
    """Return a module with globals by name, and one procedure."""

    def nothing(self: Any) -> None:
        return None

    members = {**declared, "nothing": nothing}
    return aot.export(type("Holder", (aot.CompiledModule,), members))


# Tensors


def test_a_tensor_is_an_immutable_private_global_with_its_values() -> None:
    check_ir(
        exported_globals(table=aot.export_global(NUMBERS)),
        """
        CHECK: module @holder {
        CHECK-NEXT: util.global private @_table.global =
        CHECK-SAME: dense_resource<torch_tensor_3_torch.float32> : tensor<3xf32>
        CHECK-NEXT: func.func @nothing()
        CHECK: torch_tensor_3_torch.float32: "0x04000000000000000000803F00000040"
        """,
    )


def test_a_tensor_of_another_layout_is_refused_by_name() -> None:
    with pytest.raises(aot.ExportError, match=r"tensor table.global is a torch\.sparse_coo tensor"):
        exported_globals(table=aot.export_global(torch.eye(2).to_sparse()))


def test_mutable_and_noinline_globals_say_so() -> None:
    attributes = aot.GlobalAttributes(mutable=True, noinline=True)
    check_ir(
        exported_globals(
            table=aot.export_global(NUMBERS, attrs=attributes),
            constant=aot.export_global(NUMBERS * 2, attrs=aot.GlobalAttributes(noinline=True)),
        ),
        """
        CHECK: util.global private mutable @_table.global {noinline} = dense_resource
        CHECK: util.global private @_constant.global {noinline} = dense_resource
        """,
    )


def test_an_uninitialized_global_has_no_value_and_no_initializer() -> None:
    declared = aot.export_global(aot.AbstractTensor(2, 3), mutable=True, uninitialized=True)
    check_ir(
        exported_globals(scratch=declared),
        """
        CHECK: util.global private mutable @_scratch.global = #util.uninitialized : tensor<2x3xf32>
        CHECK-NOT: util.initializer
        CHECK: func.func @nothing
        """,
    )


@pytest.mark.parametrize(
    ("name", "zero"),
    [
        ("float32", "dense<0.000000e+00> : tensor<2xf32>"),
        ("float64", "dense<0.000000e+00> : tensor<2xf64>"),
        ("float16", "dense<0.000000e+00> : tensor<2xf16>"),
        ("bfloat16", "dense<0.000000e+00> : tensor<2xbf16>"),
        ("int64", "dense<0> : tensor<2xi64>"),
        ("int8", "dense<0> : tensor<2xi8>"),
        ("float8_e4m3fn", "dense<0.000000e+00> : tensor<2xf8E4M3FN>"),
    ],
)
def test_an_abstract_tensor_starts_as_zeros(name: str, zero: str) -> None:
    kind = aot.AbstractTensor(2, dtype=getattr(torch, name))
    check_ir(
        exported_globals(value=aot.export_global(kind)),
        f"CHECK: util.global private @_value.global = {zero}",
    )


@pytest.mark.parametrize("name", ["bool", "uint8"])
def test_types_without_a_sign_of_their_own_are_stated(name: str) -> None:
    kind = aot.AbstractTensor(2, dtype=getattr(torch, name))
    check_ir(
        exported_globals(value=aot.export_global(kind, mutable=True)),
        f"""
        CHECK: util.global private mutable @_value.global {{pelton.dtype = "{name}"}}
        CHECK-SAME: = dense<0> : tensor<2xi8>
        """,
    )


def test_other_types_are_not_stated() -> None:
    tensors = {
        name: aot.export_global(torch.ones(2, dtype=getattr(torch, name)))
        for name in ("int8", "int64", "float32", "complex64", "bfloat16")
    }
    check_ir(exported_globals(**tensors), "CHECK-NOT: pelton.dtype =")


def test_tensors_of_one_element_and_of_none_are_written_out() -> None:
    check_ir(
        exported_globals(
            one=aot.export_global(torch.tensor([2.5])), none=aot.export_global(torch.ones(0, 2))
        ),
        """
        CHECK: @_one.global = dense<2.500000e+00> : tensor<1xf32>
        CHECK: @_none.global = dense<> : tensor<0x2xf32>
        """,
    )


def test_elements_are_row_major_whatever_the_strides() -> None:
    check_ir(
        exported_globals(turned=aot.export_global(torch.arange(4.0).reshape(2, 2).T)),
        """
        CHECK: @_turned.global = dense_resource<[[NAME:torch_tensor_2_2_torch.float32]]>
        CHECK: [[NAME]]: "0x0400000000000000000000400000803F00004040"
        """,
    )


def test_an_external_global_is_named_by_scope_and_mapped_name() -> None:
    check_ir(
        exported_globals(
            weight=aot.export_global(
                aot.AbstractTensor(2), external=True, external_scope="net", name_mapper=str.upper
            ),
            bias=aot.export_global(aot.AbstractTensor(3), external=True),
        ),
        """
        CHECK: @_weight.global = #flow.parameter.named<"net"::"WEIGHT.GLOBAL"> : tensor<2xf32>
        CHECK: @_bias.global = #flow.parameter.named<"model"::"bias.global"> : tensor<3xf32>
        """,
    )


def test_parameters_of_a_module_and_names_that_are_taken() -> None:
    check_ir(
        exported_globals(
            net=aot.export_parameters(nn.Linear(2, 3)),
            tree=aot.export_global_tree({"a": NUMBERS, "b": [torch.ones(2), 7]}),
        ),
        """
        CHECK: util.global private @_net.weight = dense_resource{{.*}} : tensor<3x2xf32>
        CHECK-NEXT: util.global private @_net.bias = dense_resource{{.*}} : tensor<3xf32>
        CHECK-NEXT: util.global private @_tree.a = dense_resource{{.*}} : tensor<3xf32>
        CHECK-NEXT: util.global private @_tree.b.0 = dense_resource{{.*}} : tensor<2xf32>
        CHECK-NEXT: util.global private @_tree.b.1 = 7 : i64
        """,
    )


def test_globals_of_one_name_get_numbers() -> None:
    table = torch.arange(2000.0)
    other = torch.ones(2000)
    check_ir(
        aot.export(lambda x: x + table + other, args=(torch.ones(1),)),
        """
        CHECK: util.global private @__auto.constant_2000_torch.float32 =
        CHECK-NEXT: util.global private @__auto.constant_2000_torch.float32$1 =
        """,
    )


def test_a_tensor_on_a_device_has_its_affinity() -> None:
    net = nn.Linear(2, 2)
    aot.DeviceTensorTrait(1, [0, 2]).set(net.weight)
    check_ir(
        aot.export(net, args=(torch.ones(2),), arg_device={0: aot.DeviceAffinity(0)}),
        """
        CHECK: @__auto.weight {stream.affinity = #hal.device.promise<@__device_1, [0, 2]>} =
        CHECK: @__auto.bias = dense_resource
        CHECK: func.func @main(%arg0: !torch.vtensor<[2],f32>
        CHECK-SAME: {iree.abi.affinity = #hal.device.promise<@__device_0>})
        """,
    )


# Numbers


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (aot.AbstractBool, "false"),
        (aot.AbstractI32, "0 : i32"),
        (aot.AbstractI64, "0 : i64"),
        (aot.AbstractF32, "0.000000e+00 : f32"),
        (aot.AbstractF64, "0.000000e+00 : f64"),
        (True, "true"),
        (3, "3 : i64"),
        (0.5, "5.000000e-01 : f32"),
    ],
    ids=str,
)
def test_numbers_are_globals_of_their_type(kind: Any, value: str) -> None:
    check_ir(
        exported_globals(number=aot.export_global(kind, mutable=True)),
        f"CHECK: util.global private mutable @_number.global = {value}",
    )


# What entry points state


def test_the_signature_of_an_entry_point_is_an_attribute_of_it() -> None:
    rows = aot.NamedDimension("rows", 2, 4, 16)

    def program(x: torch.Tensor, scale: float = 2.0) -> dict[str, Any]:
        return {"y": x * scale}

    check_ir(
        aot.export(program, args=(aot.InputInfo((rows, 3), torch.float32),)),
        r"""
        CHECK: func.func @main(
        CHECK-SAME: {iree.reflection = {pelton.signature = "{\22format\22:1,
        CHECK-SAME: \22name\22:\22main\22,
        CHECK-SAME: \22x\22,\22POSITIONAL_OR_KEYWORD\22,0]
        CHECK-SAME: \22scale\22,\22POSITIONAL_OR_KEYWORD\22
        CHECK-SAME: \22inputs\22:{{.}}{{.}}\22tensor\22,\22float32\22,[\22rows\22,3]]
        CHECK-SAME: [\22constant\22,2.0]]
        CHECK-SAME: \22result_tree\22:[\22dict\22,
        CHECK-SAME: \22results\22:{{.}}{{.}}\22tensor\22,\22float32\22,[\22rows\22,3]]]
        CHECK-SAME: \22dims\22:{{.}}{{.}}\22rows\22,2,16,4,
        CHECK-SAME: \22mutates\22:[]
        CHECK-SAME: test_builder.py:
        CHECK-SAME: \22overwrites_inputs\22:false
        """,
    )


def test_profiles_are_part_of_the_signature() -> None:
    length = aot.NamedDimension("length", 1, 8, 64)
    out = aot.export(
        nn.Linear(4, 4),
        args=(aot.InputInfo((length, 4), torch.float32),),
        profiles={"prompt": {"length": (16, 32, 64)}, "token": {"length": 1}},
    )
    check_ir(
        out,
        r"""
        CHECK: \22profiles\22:{{\[.*}}\22prompt\22
        CHECK-SAME: 16,{{.*}}64
        CHECK-SAME: \22token\22
        """,
    )


def test_private_functions_have_no_signature() -> None:
    class Calls(aot.CompiledModule):
        def run(self, x=aot.AbstractTensor(2)):  # type: ignore[no-untyped-def]
            return torch.relu(x)

    check_ir(
        aot.export(Calls),
        """
        CHECK: func.func @run(%arg0: tensor<2xf32>) -> tensor<2xf32> attributes {iree.reflection
        CHECK: func.func private @relu(
        CHECK-NOT: iree.reflection
        """,
    )
