"""The current trace: set for a block, nested, and of one thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pelton import aot
from pelton.aot.procedural.values.current import (
    current_ir_trace,
    ir_trace_or_none,
    new_ir_trace_scope,
)
from tests.aot.procedural.traces import tracing


def test_no_trace_is_current_outside_of_procedures() -> None:
    assert ir_trace_or_none() is None
    with pytest.raises(aot.ProcedureTraceError, match=r"no procedure .*test_current\.py:\d+"):
        current_ir_trace()


def test_the_innermost_trace_is_current() -> None:
    with tracing() as outer:
        assert current_ir_trace() is outer
        with tracing() as inner:
            assert current_ir_trace() is inner
        assert current_ir_trace() is outer
    assert ir_trace_or_none() is None


def test_none_hides_the_trace_for_a_block() -> None:
    with tracing() as trace:
        with new_ir_trace_scope(None) as given:
            assert given is None
            assert ir_trace_or_none() is None
        assert ir_trace_or_none() is trace


def test_an_error_in_a_block_restores_the_trace() -> None:
    with pytest.raises(KeyError), tracing():
        raise KeyError
    assert ir_trace_or_none() is None


def test_another_thread_has_no_current_trace() -> None:
    with tracing(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(ir_trace_or_none).result() is None
