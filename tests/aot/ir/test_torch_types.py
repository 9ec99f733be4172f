"""Types of the torch dialect and the builtin ones that stand for them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from iree.compiler.ir import Context, InsertionPoint, Location, Type

from pelton import aot
from pelton.aot.ir.builder import ModuleBuilder
from pelton.aot.ir.module import new_module
from pelton.aot.ir.torch_types import NativeTypeConverter, TensorType
from pelton.runtime.call.dtypes import DTYPES

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

SHAPES = st.lists(st.none() | st.integers(0, 2**40), max_size=6).map(tuple)
ROWS = st.sampled_from([*DTYPES.values()])
CONTEXT = Context()
CONTEXT.load_all_available_dialects()


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


# The text of tensor types


@given(shape=SHAPES, row=ROWS)
def test_text_of_the_torch_dialect_is_read_as_it_is_printed(shape, row) -> None:
    type_ = TensorType(shape, row.torch_mlir)
    assert TensorType.parse_torch(type_.torch()) == type_


@given(shape=SHAPES, row=ROWS)
def test_text_of_builtin_types_is_read_as_it_is_printed(shape, row) -> None:
    type_ = TensorType(shape, row.mlir)
    assert TensorType.parse_builtin(type_.builtin()) == type_
    signed = TensorType(shape, row.torch_mlir)
    assert TensorType.parse_builtin(signed.builtin()) == type_
    assert TensorType.parse_builtin(signed.builtin(signless=False)) == signed


@pytest.mark.parametrize("shape", [(), (0,), (1,), (None,), (2, None, 3), (None, None)])
@pytest.mark.parametrize("row", DTYPES.values(), ids=str)
def test_mlir_prints_the_same_text(row, shape) -> None:
    text = TensorType(shape, row.mlir).builtin()
    assert str(Type.parse(text, CONTEXT)) == text
    if "FNUZ" in row.mlir or "E8M0" in row.mlir:
        return  # the torch dialect lacks these
    text = TensorType(shape, row.torch_mlir).torch()
    assert str(Type.parse(text, CONTEXT)) == text


@pytest.mark.parametrize(
    "text",
    ["", "f32", "index", "!torch.int", "!torch.vtensor", "!torch.vtensor<*,f32>",
     "!torch.vtensor<[2],f32", "!torch.vtensor<[-1],f32>", "!torch.vtensor<[2],>",
     "!torch.list<vtensor<[2],f32>>", "tensor<*xf32>", "tensor<2x3>", "tensor<2xx3xf32>",
     "tensor<-1xf32>", "vector<2xf32>", "memref<2xf32>", "tensor<2xf32> ", " tensor<2xf32>"],
)  # fmt: skip
def test_other_text_is_no_tensor_type(text: str) -> None:
    assert TensorType.parse_torch(text) is None
    assert TensorType.parse_builtin(text) is None


def test_each_dialect_reads_its_own_text_only() -> None:
    type_ = TensorType((2,), "f32")
    assert TensorType.parse_torch(type_.builtin()) is None
    assert TensorType.parse_builtin(type_.torch()) is None


def test_mutable_tensors_and_encodings_are_read() -> None:
    assert TensorType.parse_torch("!torch.tensor<[?],si8>") == TensorType((None,), "si8")
    encoded = "tensor<2x?xcomplex<f32>, #iree_encoding.identity>"
    assert TensorType.parse_builtin(encoded) == TensorType((2, None), "complex<f32>")
    sparse = "!torch.vtensor<[2],f32,#sparse>"
    assert TensorType.parse_torch(sparse) == TensorType((2,), "f32")


def test_shape_and_element_of_a_type_change_apart() -> None:
    type_ = TensorType.of([2, "batch", torch.ones(1), 0, None], "si32")
    assert type_ == TensorType((2, None, None, 0, None), "si32")
    assert type_.with_element("i1") == TensorType(type_.shape, "i1")
    assert not type_.is_static
    assert TensorType((), "f32").is_static and TensorType((0, 1), "f32").is_static
