"""Tensor operations: the operation that each emits, its type, sizes, and aliases."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from iree.compiler.ir import Operation

from pelton import aot
from pelton.aot.ir.builder import GlobalAttributes
from pelton.aot.ir.module import operations_within
from pelton.aot.procedural.module.trace import IrTrace
from pelton.aot.procedural.values import tensor_ops
from pelton.aot.procedural.values.arithmetic import KIND_OF_DTYPE, constant
from pelton.aot.procedural.values.sizes import DYNAMIC
from pelton.aot.procedural.values.tensor_ops import DimSlice
from pelton.aot.procedural.values.tensors import MAY_ALIAS_ANY, NO_ALIAS
from tests.aot.procedural.traces import (
    folded,
    names_of,
    required,
    scalar,
    shape_of,
    tracing,
)


def operation(trace: IrTrace, name: str) -> Operation:
    """Return the only operation of a name in a function."""
    (found,) = (op for op in operations_within(trace.func_op.operation) if op.name == name)
    return found


# Types and sizes


@pytest.mark.parametrize(
    ("dtype", "element"),
    [
        (torch.bool, "i1"), (torch.uint8, "i8"), (torch.int32, "i32"), (torch.float16, "f16"),
        (torch.bfloat16, "bf16"), (torch.float64, "f64"), (torch.float8_e4m3fn, "f8E4M3FN"),
    ],
)  # fmt: skip
def test_the_type_of_a_shape(dtype: torch.dtype, element: str) -> None:
    with tracing(aot.AbstractIndex) as trace:
        (n,) = trace.proxy_posargs
        assert str(tensor_ops.tensor_type(trace, (), dtype)) == f"tensor<{element}>"
        assert str(tensor_ops.tensor_type(trace, (0, n, 1), dtype)) == f"tensor<0x?x1x{element}>"


def test_sizes_become_values_of_type_index() -> None:
    with tracing(aot.AbstractIndex, aot.AbstractI32) as trace:
        n, i = trace.proxy_posargs
        with trace.emitting():
            values = tensor_ops.index_values(trace, [3, n, i])
        assert [str(value.type) for value in values] == ["index"] * 3
        assert values[1] == n.ir_value
        assert tensor_ops.dynamic_values(trace, [3, n, 0]) == [n.ir_value]


def test_a_tensor_with_sizes_reads_none() -> None:
    with tracing(aot.AbstractTensor(None, 4), aot.AbstractIndex) as trace:
        x, n = trace.proxy_posargs
        tensor = tensor_ops.with_sizes(trace, x.ir_value, x.dtype, (n, 4), frozenset({"g"}))
        assert tensor.shape[0].ir_value == n.ir_value
        assert tensor.may_alias == {"g"}
        assert "tensor.dim" not in names_of(trace)


# Slices and updates

FULL = DimSlice(0, 8, is_full=True)


@pytest.mark.parametrize(
    ("slices", "contiguous"),
    [
        ([], True),
        ([DimSlice(2, 3)], True),
        ([FULL], True),
        ([DimSlice(2, 3), FULL], True),
        ([DimSlice(2, 1), DimSlice(2, 3)], True),
        ([DimSlice(2, 1), DimSlice(2, 1), DimSlice(0, 4), FULL], True),
        ([FULL, FULL], True),
        ([FULL, DimSlice(2, 3)], False),
        ([DimSlice(2, 3), DimSlice(2, 3)], False),
        ([DimSlice(2, 2), DimSlice(2, 1)], False),
        ([DimSlice(2, 0), DimSlice(2, 3)], False),
    ],
)
def test_a_slice_is_contiguous_if_all_after_its_first_range_is_full(
    slices: list[DimSlice], contiguous: bool
) -> None:
    assert tensor_ops.is_contiguous(slices) is contiguous


def test_a_dynamic_length_of_perhaps_one_is_not_known_to_be_contiguous() -> None:
    with tracing(aot.AbstractIndex) as trace:
        (n,) = trace.proxy_posargs
        assert not tensor_ops.is_contiguous([DimSlice(0, n), DimSlice(0, 4)])
        assert tensor_ops.is_contiguous([DimSlice(0, n), FULL])


def test_a_contiguous_slice_is_one_of_flow() -> None:
    with tracing(aot.AbstractTensor(None, 8), aot.AbstractIndex) as trace:
        x, i = trace.proxy_posargs
        result = tensor_ops.emit_slice(trace, x, [DimSlice(i, 2), FULL])
        assert (shape_of(result), result.dtype) == ([2, 8], torch.float32)
        assert result.may_alias == x.may_alias == MAY_ALIAS_ANY
        op = operation(trace, "flow.tensor.slice")
        assert op.operands[0] == x.ir_value
        assert op.operands[2] == i.ir_value


def test_other_slices_are_of_the_tensor_dialect() -> None:
    with tracing(aot.AbstractTensor(4, 8), aot.AbstractIndex, aot.AbstractIndex) as trace:
        x, i, n = trace.proxy_posargs
        result = tensor_ops.emit_slice(trace, x, [DimSlice(0, 4, is_full=True), DimSlice(i, n)])
        assert shape_of(result) == [4, "?"]
        assert result.shape[1].ir_value == n.ir_value
        op = operation(trace, "tensor.extract_slice")
        assert str(op.attributes["static_offsets"]) == f"array<i64: 0, {DYNAMIC}>"
        assert str(op.attributes["static_sizes"]) == f"array<i64: 4, {DYNAMIC}>"
        assert list(op.operands) == [x.ir_value, i.ir_value, n.ir_value]


def test_a_slice_of_no_elements_has_a_size_of_zero() -> None:
    with tracing(aot.AbstractTensor(4, 8)) as trace:
        (x,) = trace.proxy_posargs
        result = tensor_ops.emit_slice(trace, x, [DimSlice(1, 0), FULL])
        assert shape_of(result) == [0, 8]


def test_an_update_has_the_type_of_its_target() -> None:
    with tracing(aot.AbstractTensor(None, 8), aot.AbstractTensor(2, 8)) as trace:
        target, update = trace.proxy_posargs
        result = tensor_ops.emit_update(trace, target, update, [DimSlice(1, 2), FULL])
        assert (result.ir_type, result.may_alias) == (target.ir_type, target.may_alias)
        assert operation(trace, "flow.tensor.update").results[0] == result.ir_value
        assert result.shape[0].ir_value == target.shape[0].ir_value


def test_other_updates_are_of_the_tensor_dialect() -> None:
    with tracing(aot.AbstractTensor(4, 8), aot.AbstractTensor(4, None)) as trace:
        target, update = trace.proxy_posargs
        slices = [DimSlice(0, 4, is_full=True), DimSlice(3, update.shape[1])]
        tensor_ops.emit_update(trace, target, update, slices)
        op = operation(trace, "tensor.insert_slice")
        assert list(op.operands) == [update.ir_value, target.ir_value, update.shape[1].ir_value]
        assert str(op.attributes["static_offsets"]) == "array<i64: 0, 3>"


# Shapes and fills


def test_a_reshape_keeps_the_alias_and_the_dtype() -> None:
    with tracing(aot.AbstractTensor(None, 4, dtype=torch.int8), aot.AbstractIndex) as trace:
        x, n = trace.proxy_posargs
        result = tensor_ops.emit_reshape(trace, x, (2, n, 1))
        assert str(result.ir_type) == "tensor<2x?x1xi8>"
        assert result.may_alias == x.may_alias
        assert list(operation(trace, "flow.tensor.reshape").operands) == [
            x.ir_value, x.shape[0].ir_value, n.ir_value,
        ]  # fmt: skip


def test_a_reshape_to_rank_zero() -> None:
    with tracing(aot.AbstractTensor(1, 1)) as trace:
        result = tensor_ops.emit_reshape(trace, trace.proxy_posargs[0], ())
        assert str(result.ir_type) == "tensor<f32>"


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_an_empty_tensor_is_of_flow(shape: tuple[int, ...]) -> None:
    with tracing() as trace:
        result = tensor_ops.emit_empty(trace, shape, torch.float16)
        assert (shape_of(result), result.dtype) == (list(shape), torch.float16)
        assert result.may_alias == NO_ALIAS
        assert names_of(trace) == ["flow.tensor.empty", "func.func"]


def test_a_splat_takes_a_value_of_the_element_type() -> None:
    with tracing(aot.AbstractIndex) as trace:
        (n,) = trace.proxy_posargs
        with trace.emitting():
            value = constant(7, "i32")
        result = tensor_ops.emit_splat(trace, (n, 2), value, torch.int32)
        assert str(result.ir_type) == "tensor<?x2xi32>"
        assert list(operation(trace, "flow.tensor.splat").operands) == [value, n.ir_value]


@pytest.mark.parametrize("value", [2.75, -1, 0, 3, True])
def test_a_fill_converts_the_number_as_torch_does(value: float) -> None:
    for dtype in KIND_OF_DTYPE:
        with tracing() as trace:
            result = tensor_ops.emit_fill(trace, (2,), value, dtype)
            assert (result.dtype, shape_of(result)) == (dtype, [2])
            (element,) = operation(trace, "flow.tensor.splat").operands
            assert folded(trace, [element]) == [torch.tensor(value).to(dtype).item()]


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        (torch.float16, torch.float32), (torch.bfloat16, torch.float32),
        (torch.uint8, torch.int64), (torch.uint16, torch.int64),
    ],
)  # fmt: skip
def test_a_fill_of_a_type_without_scalars_converts_a_wider_one(
    dtype: torch.dtype, wide: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    with tracing() as trace:
        monkeypatch.setattr(trace, "call_torch", lambda *call: calls.append(call))
        tensor_ops.emit_fill(trace, (2,), 1, dtype)
    ((function, (filled, target)),) = calls
    assert function is torch.Tensor.to
    assert (filled.dtype, target, shape_of(filled)) == (wide, dtype, [2])


def test_a_fill_takes_numbers_only() -> None:
    with tracing() as trace:
        with pytest.raises(aot.ProcedureTraceError, match="expected a number, got 'x'"):
            tensor_ops.emit_fill(trace, (2,), "x", torch.float32)


# Casts and checks


def test_a_cast_to_the_same_type_emits_nothing() -> None:
    with tracing(aot.AbstractTensor(None, 4)) as trace:
        (x,) = trace.proxy_posargs
        assert tensor_ops.emit_cast(trace, x, [DYNAMIC, 4]) == x.ir_value
        assert names_of(trace) == ["func.func"]


def test_a_cast_checks_each_size_that_becomes_static() -> None:
    with tracing(aot.AbstractTensor(None, None, 4)) as trace:
        (x,) = trace.proxy_posargs
        value = tensor_ops.emit_cast(trace, x, [2, DYNAMIC, 4])
        assert str(value.type) == "tensor<2x?x4xf32>"
        assert required(trace) == ["dimension 0 of float32[?, ?, 4] must be 2"]


def test_a_cast_to_another_static_size_is_refused() -> None:
    with tracing(aot.AbstractTensor(3)) as trace:
        with pytest.raises(aot.ProcedureTraceError, match=r"float32\[3\] is 3, but must be 2"):
            tensor_ops.emit_cast(trace, trace.proxy_posargs[0], [2])


def test_equal_sizes_need_no_check_and_others_a_static_or_dynamic_one() -> None:
    with tracing(aot.AbstractIndex, aot.AbstractIndex) as trace:
        m, n = trace.proxy_posargs
        tensor_ops.require_equal(trace, 2, 2, "a")
        tensor_ops.require_equal(trace, n + 1, 1 + n, "b")
        assert required(trace) == []
        with pytest.raises(aot.ProcedureTraceError, match="c is 2, but must be 3"):
            tensor_ops.require_equal(trace, 2, 3, "c")
        tensor_ops.require_equal(trace, n, 3, "d")
        tensor_ops.require_equal(trace, 3, n, "e")
        tensor_ops.require_equal(trace, m, n, "f")
        differs = "differs from what it must equal"
        assert required(trace) == ["d must be 3", f"e {differs}", f"f {differs}"]


# Copies and globals


def test_a_copy_is_a_select_that_the_compiler_cannot_fold() -> None:
    with tracing(aot.AbstractTensor(None, 4, dtype=torch.int64)) as trace:
        (x,) = trace.proxy_posargs
        result = tensor_ops.emit_copy(trace, x)
        assert (result.ir_type, result.may_alias) == (x.ir_type, NO_ALIAS)
        select = operation(trace, "arith.select")
        assert select.operands[1] == x.ir_value
        assert "util.optimization_barrier" in names_of(trace)
        assert str(select.operands[0].type) == "tensor<?x4xi1>"


@pytest.mark.parametrize(
    ("dtype", "held", "loads", "stores"),
    [
        (torch.float32, "f32", [], []),
        (torch.uint8, "i8", [], []),
        (torch.bool, "i8", ["arith.cmpi"], ["arith.extui"]),
    ],
)
def test_globals_hold_bools_as_bytes(
    dtype: torch.dtype, held: str, loads: list[str], stores: list[str]
) -> None:
    with tracing() as trace:
        value = torch.zeros(2, dtype=dtype)
        target = trace.module_builder.tensor_global(value, "g", GlobalAttributes(mutable=True))
        assert str(target.type) == f"tensor<2x{held}>"
        loaded = tensor_ops.emit_global_load(trace, target)
        tensor_ops.emit_global_store(trace, target, loaded)
        expected = ["util.global.load", *loads, *stores, "util.global.store", "func.func"]
        assert names_of(trace) == expected
        trace.emit_return()
        trace.module_builder.finalize_construct()


def test_a_rank_zero_tensor_of_a_scalar() -> None:
    with tracing() as trace:
        result = tensor_ops.emit_rank0(trace, scalar(trace, 1.5, "f64"))
        assert (str(result.ir_type), result.dtype) == ("tensor<f64>", torch.float64)
