"""Types of the torch dialect and the builtin ones that stand for them."""

from __future__ import annotations

import pytest
import torch
from iree.compiler.ir import Context, InsertionPoint, Location

from pelton import aot
from pelton.aot.ir.builder import ModuleBuilder
from pelton.aot.ir.module import new_module
from pelton.aot.ir.torch_types import NativeTypeConverter

PAIRS = {
    "!torch.vtensor<[2,?],si64>": "tensor<2x?xi64>",
    "!torch.vtensor<[],f32>": "tensor<f32>",
    "!torch.tensor<[4],ui8>": "tensor<4xi8>",
    "!torch.vtensor<[1],complex<f32>>": "tensor<1xcomplex<f32>>",
    "!torch.vtensor<[3],i1>": "tensor<3xi1>",
    "!torch.bool": "i1",
    "!torch.int": "i64",
    "!torch.float": "f64",
}


@pytest.fixture
def converter() -> NativeTypeConverter:
    return NativeTypeConverter(Context())


@pytest.mark.parametrize("text", PAIRS)
def test_types_become_builtin_ones(text: str, converter: NativeTypeConverter) -> None:
    assert str(converter.torch_type_to_native(converter.parse(text))) == PAIRS[text]


def test_signs_are_kept_where_they_are_wanted(converter: NativeTypeConverter) -> None:
    type_ = converter.parse("!torch.vtensor<[2],ui8>")
    assert str(converter.torch_type_to_native(type_, signless=False)) == "tensor<2xui8>"


@pytest.mark.parametrize("text", ["!torch.none", "!torch.vtensor", "!torch.list<int>"])
def test_other_types_are_refused(text: str, converter: NativeTypeConverter) -> None:
    with pytest.raises(aot.ExportError, match="has no builtin form"):
        converter.torch_type_to_native(converter.parse(text))
    with pytest.raises(aot.ExportError, match="is no type"):
        converter.parse("!torch.nothing<")


def test_values_cross_both_ways() -> None:
    builder = ModuleBuilder(new_module("m"))
    converter = builder.native_type_converter
    tensor, number = converter.parse("tensor<2x3xf32>"), converter.parse("i64")
    _, function = builder.create_func_op("f", [tensor, number], is_public=False)
    with Location.unknown(builder.context), InsertionPoint(function.entry_block):
        given, count = function.arguments
        general = converter.parse("!torch.vtensor<[?,3],f32>")
        value = converter.materialize_native_to_torch(given, general)
        back = converter.materialize_torch_to_native(value, static_info_cast_to=tensor)
        integer = converter.materialize_native_to_torch(count, converter.parse("!torch.int"))
        again = converter.materialize_torch_to_native(integer)
        with pytest.raises(aot.ExportError, match="a value of type i64 is no tensor"):
            converter.materialize_native_to_torch(count, general)
    assert (str(value.type), back.type, str(integer.type)) == (str(general), tensor, "!torch.int")
    assert again.type == number
    assert builder.torch_dtype_to_iree_type(torch.float32) == back.type.element_type
