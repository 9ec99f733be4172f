"""MLIR types as torch has them."""

from __future__ import annotations

import pytest
import torch
from iree.compiler.ir import Context, Type

from pelton.aot.raising.fx.types import (
    TensorType,
    element_dtype,
    is_python_number,
    number_dtype,
    tensor_type,
    value_dtype,
)

CONTEXT = Context()


def parsed(text: str) -> Type:
    return Type.parse(text, CONTEXT)


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("tensor<f32>", (), torch.float32),
        ("tensor<2x?xi8>", (2, None), torch.int8),
        ("tensor<0x3xbf16>", (0, 3), torch.bfloat16),
        ("tensor<4xi1>", (4,), torch.bool),
        ("tensor<?xcomplex<f32>>", (None,), torch.complex64),
        ("!torch.vtensor<[],f64>", (), torch.float64),
        ("!torch.vtensor<[2,?],si64>", (2, None), torch.int64),
        ("!torch.vtensor<[1],ui8>", (1,), torch.uint8),
        ("!torch.vtensor<[?],f16>", (None,), torch.float16),
    ],
)
def test_tensor_types_of_both_dialects(
    text: str, shape: tuple[int | None, ...], dtype: torch.dtype
) -> None:
    assert tensor_type(parsed(text)) == TensorType(shape, dtype)
    assert value_dtype(parsed(text)) is dtype


@pytest.mark.parametrize("text", ["i64", "index", "!torch.int", "!torch.float", "tensor<2xi3>"])
def test_other_types_are_no_tensors(text: str) -> None:
    assert tensor_type(parsed(text)) is None


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("i64", torch.int64),
        ("index", torch.int64),
        ("f32", torch.float32),
        ("i1", torch.bool),
        ("!torch.int", torch.int64),
        ("!torch.float", torch.float64),
        ("!torch.bool", torch.bool),
        ("!torch.str", None),
        ("tensor<f32>", None),
        ("i3", None),
    ],
)
def test_scalars(text: str, dtype: torch.dtype | None) -> None:
    assert number_dtype(parsed(text)) is dtype


def test_a_type_without_a_form_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a value of type !torch\.str has no form in torch"):
        value_dtype(parsed("!torch.str"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("index", True), ("i64", True), ("!torch.int", True), ("i32", False), ("f64", False)],
)
def test_python_integers_drive_shapes(text: str, expected: bool) -> None:
    assert is_python_number(parsed(text)) is expected


def test_element_types_without_sign_are_signed() -> None:
    assert element_dtype("i16") is torch.int16
    assert element_dtype("ui16") is torch.uint16
    assert element_dtype("f8E4M3FN") is torch.float8_e4m3fn
    assert element_dtype("tf32") is None
