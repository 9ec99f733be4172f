"""Traces of procedures: their function, arguments and results as values of the module."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from iree.compiler.ir import Location

from pelton import aot
from pelton.aot.procedural.module.procedure_trace import ProcedureTrace, convert_py_value_to_ir
from pelton.aot.procedural.values.errors import ProcedureTraceError
from pelton.aot.procedural.values.scalars import IrImmediateScalar
from pelton.aot.procedural.values.tensors import MAY_ALIAS_ANY, IrImmediateTensor
from tests.aot.procedural.traces import names_of, new_builder, scalar, tracing


def define(*posargs: Any, **options: Any) -> ProcedureTrace:
    builder = new_builder()
    kwargs = options.pop("kwargs", {})
    return ProcedureTrace.define_func(
        builder,
        symbol_name="f",
        posargs=posargs,
        kwargs=kwargs,
        loc=Location.unknown(builder.context),
        **options,
    )


# Arguments


def test_arguments_have_the_structure_and_constants_that_were_given() -> None:
    trace = define(
        {"x": aot.AbstractTensor(2), "n": [aot.AbstractI64, 7]}, None, kwargs={"flag": True}
    )
    tree, none = trace.proxy_posargs
    assert list(tree) == ["x", "n"]
    assert isinstance(tree["x"], IrImmediateTensor)
    assert isinstance(tree["n"][0], IrImmediateScalar)
    assert (tree["n"][1], none, trace.proxy_kwargs) == (7, None, {"flag": True})
    assert str(trace.func_op.type) == "(tensor<2xf32>, i64) -> ()"


def test_keyword_arguments_come_after_positional_ones() -> None:
    trace = define(aot.AbstractI64, kwargs={"x": aot.AbstractF32})
    assert str(trace.func_op.type) == "(i64, f32) -> ()"
    assert trace.proxy_kwargs["x"].kind == "f32"


def test_a_tensor_argument_may_share_memory_with_anything() -> None:
    (x,) = define(aot.AbstractTensor(2)).proxy_posargs
    assert x.may_alias == MAY_ALIAS_ANY


def test_dimensions_of_one_name_have_one_value() -> None:
    types = aot.AbstractTensor("n", None), aot.AbstractTensor(3, "n"), aot.AbstractTensor("n", "n")
    x, y, square = define(*types).proxy_posargs
    n = x.known_dim_values()[0]
    assert x.known_dim_values() == {0: n}
    assert y.known_dim_values() == {1: n}
    assert square.known_dim_values() == {0: n, 1: n}


def test_a_single_named_dimension_is_not_read() -> None:
    trace = define(aot.AbstractTensor("n"))
    assert list(trace.func_op.entry_block.operations) == []


@pytest.mark.parametrize(("public", "visibility"), [(True, None), (False, '"private"')])
def test_only_entry_points_are_public(public: bool, visibility: str | None) -> None:
    attributes = define(public=public).func_op.operation.attributes
    found = str(attributes["sym_visibility"]) if "sym_visibility" in attributes else None
    assert found in ((visibility,) if visibility else (None, '"public"'))


def test_a_taken_name_gets_a_suffix() -> None:
    builder = new_builder()
    loc = Location.unknown(builder.context)
    traces = [
        ProcedureTrace.define_func(builder, symbol_name="f", posargs=(), kwargs={}, loc=loc)
        for _ in range(2)
    ]
    assert traces[0].name == "f"
    assert traces[1].name != "f"


def test_devices_are_stated_by_the_position_of_the_flat_argument() -> None:
    tree = [aot.AbstractTensor(2), 5, aot.AbstractTensor(2)]
    trace = define(tree, arg_device={1: aot.DeviceAffinity(3)})
    first, second = trace.func_op.arg_attrs
    assert len(first) == 0
    assert "__device_3" in str(second)


# Results


def traced(function: Any, *types: Any) -> ProcedureTrace:
    trace = define(*types)
    trace.trace_py_func(function)
    assert trace.func_op.operation.verify()
    return trace


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


def test_results_are_traced_values_and_constants_in_their_structure() -> None:
    trace = traced(
        lambda x, n: {"p": Pair(x, "text"), "l": [n, None, 2.5], "t": ()},
        aot.AbstractTensor(2),
        aot.AbstractI64,
    )
    assert str(trace.func_op.type) == "(tensor<2xf32>, i64) -> (tensor<2xf32>, i64)"
    x, text, n, number = trace.results
    assert isinstance(x, IrImmediateTensor)
    assert isinstance(n, IrImmediateScalar)
    assert (text, number) == ("text", 2.5)


def test_no_result_is_none() -> None:
    trace = traced(lambda: None)
    assert str(trace.func_op.type) == "() -> ()"
    assert names_of(trace, "func.func") == ["func.return"]


def test_a_torch_tensor_is_returned_as_a_constant() -> None:
    trace = traced(lambda: [torch.ones(2, dtype=torch.int8)])
    assert str(trace.func_op.type) == "() -> tensor<2xi8>"


def test_a_global_is_loaded_before_the_return() -> None:
    trace = define()
    info = aot.export_global(3, mutable=True)
    tracked = info.track(trace.module_builder, "n")

    def function() -> Any:
        count = tracked.materialize()
        count.set(4)
        return count, count

    trace.trace_py_func(function)
    assert names_of(trace, "func.func") == [
        "util.global.store", "util.global.load", "util.global.load", "func.return"
    ]  # fmt: skip
    assert str(trace.func_op.type) == "() -> (i64, i64)"


def test_bare_values_of_the_module_may_be_returned() -> None:
    trace = traced(
        lambda x, y, n: (x.ir_value, y.ir_value, n.ir_value),
        aot.AbstractTensor(2, dtype=torch.int64),
        aot.AbstractTensor(dtype=torch.bool),
        aot.AbstractI32,
    )
    x, y, n = trace.results
    assert (x.dtype, y.dtype, n.kind) == (torch.int64, torch.bool, "i32")


def test_known_sizes_of_results_are_kept() -> None:
    trace = traced(lambda x, y: y, aot.AbstractTensor("n"), aot.AbstractTensor("n"))
    (result,) = trace.results
    assert list(result.known_dim_values()) == [0]


@pytest.mark.parametrize("value", [{1, 2}, b"x", 1j], ids=["set", "bytes", "complex"])
def test_what_cannot_be_returned_is_named(value: Any) -> None:
    with pytest.raises(ProcedureTraceError, match=rf"f\(\): .*{type(value).__name__}"):
        define().trace_py_func(lambda: [value])


def test_the_trace_is_over_after_an_error() -> None:
    def fails() -> None:
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        define().trace_py_func(fails)
    with pytest.raises(ProcedureTraceError, match="no procedure is being traced"):
        scalar(define(), 1, "i64")


# Values


def test_python_values_become_values_of_the_module() -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        (x,) = trace.proxy_posargs
        assert convert_py_value_to_ir(trace, x) == [x.ir_value]
        assert convert_py_value_to_ir(trace, x.ir_value) == [x.ir_value]
        for value, type_ in [
            (True, "i1"), (1, "i64"), (0.5, "f32"), (torch.zeros(0, 2), "tensor<0x2xf32>")
        ]:  # fmt: skip
            (found,) = convert_py_value_to_ir(trace, value)
            assert str(found.type) == type_


def test_a_value_of_another_class_is_refused_with_a_short_text() -> None:
    with tracing() as trace, pytest.raises(ProcedureTraceError, match="a str") as caught:
        convert_py_value_to_ir(trace, "x" * 1000)
    assert len(str(caught.value)) < 400
