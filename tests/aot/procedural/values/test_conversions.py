"""Conversions to traced values: torch tensors become globals, scalars tensors, tensors sizes."""

from __future__ import annotations

import pytest
import torch

from pelton import aot
from pelton.aot.ir.builder import GlobalAttributes
from pelton.aot.procedural.values.conversions import (
    constant_of,
    index_of,
    tensor_of,
    tensor_of_type,
)
from pelton.aot.procedural.values.tensors import NO_ALIAS
from tests.aot.procedural.traces import names_of, required, scalar, shape_of, tracing


def test_a_traced_tensor_is_itself() -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        (x,) = trace.proxy_posargs
        assert tensor_of(trace, x, "x") is x
        assert names_of(trace) == ["func.func"]


@pytest.mark.parametrize("kind", ["i1", "i8", "i32", "i64", "f32", "f64"])
def test_a_scalar_becomes_a_tensor_of_rank_zero(kind: str) -> None:
    with tracing() as trace:
        value = scalar(trace, 1, kind)
        tensor = tensor_of(trace, value, "x")
        assert (tensor.rank, tensor.dtype, tensor.may_alias) == (0, value.dtype, NO_ALIAS)
        assert str(tensor.ir_type) == f"tensor<{kind}>"
        assert names_of(trace) == ["tensor.from_elements", "func.func"]


def test_an_index_becomes_a_tensor_of_int64() -> None:
    with tracing(aot.AbstractIndex) as trace:
        tensor = tensor_of(trace, trace.proxy_posargs[0], "x")
        assert tensor.dtype == torch.int64
        assert names_of(trace) == ["arith.index_cast", "tensor.from_elements", "func.func"]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8, torch.int64])
def test_a_torch_tensor_becomes_a_load_of_a_global(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    with tracing() as trace:
        value = torch.zeros(shape, dtype=dtype)
        tensor = tensor_of(trace, value, "x")
        assert (shape_of(tensor), tensor.dtype) == (list(shape), dtype)
        assert names_of(trace) == ["util.global.load", "func.func"]
        (symbol,) = tensor.may_alias
        assert trace.module_builder.globals[id(value)].symbol == symbol
        assert symbol.startswith("__auto.constant_")


def test_a_bool_tensor_is_a_global_of_bytes() -> None:
    with tracing() as trace:
        tensor = constant_of(trace, torch.tensor([True, False]))
        assert str(tensor.ir_type) == "tensor<2xi1>"
        assert names_of(trace) == ["util.global.load", "arith.cmpi", "func.func"]


def test_one_torch_tensor_is_one_global() -> None:
    with tracing() as trace:
        value = torch.zeros(2)
        first, second = constant_of(trace, value), constant_of(trace, value)
        other = constant_of(trace, torch.zeros(2))
        assert first.may_alias == second.may_alias != other.may_alias
        assert len(trace.module_builder.globals) == 2


def test_a_tensor_that_has_a_global_already_uses_it() -> None:
    with tracing() as trace:
        value = torch.zeros(2)
        trace.module_builder.tensor_global(value, "_weights.a", GlobalAttributes(mutable=True))
        assert constant_of(trace, value).may_alias == {"_weights.a"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, r"x must be a tensor, got 1\.5; fill a tensor with `tensor\[\.\.\.\] = number`"),
        (True, r"x must be a tensor, got True; fill a tensor"),
        ("text", r"x must be a tensor, got 'text'(?!;)"),
        (None, r"x must be a tensor, got None(?!;)"),
        ([1], r"x must be a tensor, got \[1\](?!;)"),
    ],
)
def test_what_is_no_tensor_is_refused(value: object, message: str) -> None:
    with tracing() as trace:
        with pytest.raises(aot.ProcedureTraceError, match=message):
            tensor_of(trace, value, "x")


# Sizes


def test_a_tensor_of_one_integer_is_an_index() -> None:
    with tracing(aot.AbstractTensor(dtype=torch.int64), aot.AbstractTensor(1, 1)) as trace:
        count, floating = trace.proxy_posargs
        assert index_of(trace, count).kind == "index"
        assert index_of(trace, 3).kind == "index"
        with pytest.raises(aot.ProcedureTraceError, match="a size or position is an integer"):
            index_of(trace, floating)


def test_a_tensor_of_several_integers_is_no_index() -> None:
    with tracing(aot.AbstractTensor(2, dtype=torch.int64)) as trace:
        with pytest.raises(aot.ProcedureTraceError, match="tensor of one element"):
            index_of(trace, trace.proxy_posargs[0])


# Types


def test_a_tensor_of_the_type_is_its_value() -> None:
    with tracing(aot.AbstractTensor(None, 2)) as trace:
        (x,) = trace.proxy_posargs
        assert tensor_of_type(trace, x, aot.AbstractTensor("n", 2), "x") == x.ir_value
        assert names_of(trace) == ["func.func"]


def test_a_static_size_becomes_dynamic_without_a_check() -> None:
    with tracing(aot.AbstractTensor(3, 2)) as trace:
        value = tensor_of_type(trace, trace.proxy_posargs[0], aot.AbstractTensor(None, 2), "x")
        assert str(value.type) == "tensor<?x2xf32>"
        assert names_of(trace) == ["tensor.cast", "func.func"]
        assert required(trace) == []


def test_a_dynamic_size_becomes_static_with_a_check() -> None:
    with tracing(aot.AbstractTensor(None, 2)) as trace:
        value = tensor_of_type(trace, trace.proxy_posargs[0], aot.AbstractTensor(3, 2), "x")
        assert str(value.type) == "tensor<3x2xf32>"
        assert required(trace) == ["dimension 0 of float32[?, 2] must be 3"]


@pytest.mark.parametrize(
    "given",
    [
        aot.AbstractTensor(2, 3), aot.AbstractTensor(2), aot.AbstractTensor(),
        aot.AbstractTensor(2, 2, dtype=torch.float16), aot.AbstractTensor(0, 2),
        aot.AbstractTensor(2, 2, 1),
    ],
    ids=str,
)  # fmt: skip
def test_a_tensor_of_another_type_is_refused(given: aot.AbstractTensor) -> None:
    with tracing(given) as trace:
        (x,) = trace.proxy_posargs
        expected = aot.AbstractTensor(2, 2)
        with pytest.raises(aot.ProcedureTraceError) as caught:
            tensor_of_type(trace, x, expected, "argument x")
        assert f"argument x expects float32[2, 2], got {given}" in str(caught.value)


def test_a_service_of_the_trace_converts_alike() -> None:
    with tracing(aot.AbstractTensor(3)) as trace:
        (x,) = trace.proxy_posargs
        assert str(trace.tensor_of_type(x, aot.AbstractTensor(None), "x").type) == "tensor<?xf32>"
