"""Intrinsics: where a traced value may be used, and what Python cannot do with one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from iree.compiler.ir import Block, Operation, Value

from pelton import aot
from pelton.aot.procedural.values.intrinsics import CallableIntrinsic, EmptyType, Intrinsic
from pelton.aot.procedural.values.services import Scope, TraceServices
from tests.aot.procedural.traces import names_of, scalar, tracing


class Pair(CallableIntrinsic):
    """An intrinsic of two values, which adds when it is called."""

    def __init__(self, values: Sequence[Value]) -> None:
        super().__init__()
        self._values = values

    def resolve_ir_values(self, proc_trace: TraceServices) -> Sequence[Value]:
        return self._values

    def resolve_call(self, proc_trace: TraceServices, *args: Any, **kwargs: Any) -> Any:
        return proc_trace, args, kwargs


class Bare(Intrinsic):
    """An intrinsic that defines nothing."""


def new_block(trace: TraceServices) -> Block:
    with trace.context, trace.location():
        holder = Operation.create("builtin.module", regions=1, ip=False)
        return Block.create_at_start(holder.regions[0], [])


def test_an_intrinsic_needs_a_trace() -> None:
    with pytest.raises(aot.ProcedureTraceError, match="no procedure is being traced"):
        Bare()


def test_values_of_an_intrinsic() -> None:
    with tracing() as trace:
        one, two = (scalar(trace, n, "i64").ir_value for n in (1, 2))
        assert list(Pair([one, two]).ir_values) == [one, two]
        assert Pair([two]).ir_value is two
        with pytest.raises(ValueError, match="too many values"):
            _ = Pair([one, two]).ir_value


def test_a_call_goes_to_the_current_trace() -> None:
    with tracing() as trace:
        assert Pair([])(1, key=2) == (trace, (1,), {"key": 2})


def test_a_value_is_used_in_its_own_trace_only() -> None:
    with tracing() as first:
        value = scalar(first, 1, "i64")
        with tracing():
            with pytest.raises(
                aot.ProcedureTraceError, match=r"traced i64> is a traced value of f\(\) and cannot"
            ):
                _ = value.ir_value
        assert value.trace is first
    with pytest.raises(aot.ProcedureTraceError, match=r"store it in a mutable global.*\.py:\d+"):
        _ = value.ir_value


def test_a_value_of_an_outer_region_is_visible_inside() -> None:
    with tracing() as trace:
        outer = scalar(trace, 1, "i64")
        with trace.region(new_block(trace)):
            assert outer.trace is trace


def test_a_value_of_a_region_that_ended_is_not_visible() -> None:
    with tracing() as trace:
        with trace.region(new_block(trace)):
            inner = scalar(trace, 1, "i64")
            assert inner.trace is trace
        with pytest.raises(aot.ProcedureTraceError, match="loop body or branch that has ended"):
            _ = inner.trace
        with trace.region(new_block(trace)):
            with pytest.raises(aot.ProcedureTraceError, match="that has ended"):
                _ = inner.trace


def test_a_region_that_is_continued_sees_its_values() -> None:
    with tracing() as trace:
        block, scope = new_block(trace), Scope(trace.scope)
        with trace.region(block, scope):
            inner = scalar(trace, 1, "i64")
        with trace.region(block, scope):
            assert inner.trace is trace


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (bool, r"`if`, `while`, .* use aot\.cond or aot\.while_loop"),
        (operator.not_, r"`if`, `while`, .* use aot\.cond or aot\.while_loop"),
        (int, r"int\(\) needs a value .* use \.to\(torch\.int64\)"),
        (float, r"float\(\) needs a value .* use \.to\(torch\.float32\)"),
        (range, r"range\(\), .* use aot\.for_loop"),
        ([1, 2].__getitem__, r"an index of a Python list, .* index a traced tensor"),
    ],
)
def test_python_cannot_use_a_value_that_is_not_known(
    use: Callable[[Any], Any], message: str
) -> None:
    with tracing() as trace:
        value = scalar(trace, 1, "i64")
        with pytest.raises(aot.ProcedureTraceError, match=message):
            use(value)
        assert names_of(trace) == ["func.func"]


def test_a_class_that_defines_nothing_says_so() -> None:
    with tracing() as trace:
        bare = Bare()
        with pytest.raises(NotImplementedError, match="Bare has no value"):
            bare.resolve_ir_values(trace)
        with pytest.raises(NotImplementedError, match="Bare cannot be called"):
            bare.resolve_call(trace)
        with pytest.raises(aot.ProcedureTraceError, match="cannot be assigned to; only mutable"):
            bare.resolve_assignment(trace, [])


def test_the_placeholder_is_called_empty() -> None:
    assert repr(EmptyType()) == "Empty"
