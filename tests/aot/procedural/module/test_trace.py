"""Traces: errors at the user's line, regions, versions of globals, and checks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot
from pelton.aot.capture.arguments import TracedInput, flatten_arguments
from pelton.aot.procedural.calls.captured import Callee, ProgramTable
from pelton.aot.procedural.values.errors import ProcedureTraceError
from pelton.aot.procedural.values.services import Scope
from tests.aot.procedural.traces import names_of, required, scalar, tracing


def test_a_failure_names_the_function_and_the_users_line() -> None:
    with tracing() as trace, pytest.raises(ProcedureTraceError, match=r"^f\(\): wrong") as caught:
        trace.fail("wrong")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_a_region_is_left_as_it_was_entered_even_after_an_error() -> None:
    with tracing() as trace:
        before = trace.ip, trace.scope
        block = trace.func_op.body.blocks.append()
        with trace.region(block):
            assert trace.ip.block == block
            assert trace.scope is not trace.root_scope
            assert trace.root_scope.encloses(trace.scope)
        assert (trace.ip, trace.scope) == before
        with pytest.raises(ValueError, match="inside"), trace.region(block):
            raise ValueError("inside")
        assert (trace.ip, trace.scope) == before


def test_a_region_may_be_continued() -> None:
    with tracing() as trace:
        block = trace.func_op.body.blocks.append()
        scope = Scope(trace.root_scope)
        with trace.region(block, scope):
            assert trace.scope is scope
            scalar(trace, 1, "i64")
        with trace.region(block, scope):
            scalar(trace, 2, "i64")
        assert [op.operation.name for op in block.operations] == ["arith.constant"] * 2
        assert list(trace.func_op.entry_block.operations) == []


def test_a_store_makes_a_new_version_of_its_global_only() -> None:
    with tracing() as trace:
        a, b = trace.version_of("a"), trace.version_of("b")
        assert a != b
        assert trace.version_of("a") == a
        trace.stored("a")
        assert trace.version_of("a") != a
        assert trace.version_of("b") == b
        assert trace.stores == {"a"}


def test_versions_end_where_a_region_begins_and_ends() -> None:
    with tracing() as trace:
        block = trace.func_op.body.blocks.append()
        before = trace.version_of("a")
        with trace.region(block):
            inside = trace.version_of("a")
        after = trace.version_of("a")
        assert len({before, inside, after}) == 3


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += x
        return self.count * 2


@pytest.mark.parametrize(
    ("module", "changes"), [(nn.ReLU(), False), (Counter(), True)], ids=["pure", "stateful"]
)
def test_a_call_ends_versions_where_it_may_store(module: nn.Module, changes: bool) -> None:
    arguments = flatten_arguments(
        module.forward, [TracedInput(None, torch.float32, (2,))], {}, None
    )
    with tracing() as trace:
        program = ProgramTable(trace.module_builder).find(Callee(module, "m"), arguments)
        before = trace.version_of("a")
        trace.called(program)
        assert (trace.version_of("a") != before) is changes
        trace.called(object())
        assert trace.callees[0] is program
        assert trace.version_of("a") != before


def test_a_condition_that_is_known_is_checked_now() -> None:
    with tracing() as trace:
        trace.require(True, "never seen")
        assert names_of(trace, "func.func") == []
        with pytest.raises(ProcedureTraceError, match=r"f\(\): not so"):
            trace.require(False, "not so")


def test_a_traced_condition_is_checked_when_the_program_runs() -> None:
    with tracing(aot.AbstractI64) as trace:
        trace.require(trace.proxy_posargs[0] > 2, "too small")
        assert required(trace) == ["too small"]
        assert f"(at {__file__}:" in str(trace.func_op)


def test_parts_of_tensors_are_read_and_written() -> None:
    with tracing(aot.AbstractTensor(4, 2)) as trace:
        (x,) = trace.proxy_posargs
        row = trace.read(x, 1)
        assert row.type_shape == [2]
        written = trace.write(x, 0, row)
        assert written.type_shape == [4, 2]
        assert written is not x
        with pytest.raises(ProcedureTraceError, match="does not fit"):
            trace.read(x, (0, 0, 0))


def test_a_tensor_is_given_the_type_that_is_expected() -> None:
    with tracing(aot.AbstractTensor(None, 2)) as trace:
        (x,) = trace.proxy_posargs
        value = trace.tensor_of_type(x, aot.AbstractTensor(3, 2), "here")
        assert str(value.type) == "tensor<3x2xf32>"
        with pytest.raises(ProcedureTraceError, match=r"here expects float32\[3, 3\], got"):
            trace.tensor_of_type(x, aot.AbstractTensor(3, 3), "here")


def test_intrinsics_are_called_by_the_trace() -> None:
    class Called:
        def resolve_call(self, *args: Any, **kwargs: Any) -> Any:
            return args, kwargs

    with tracing() as trace:
        called: Any = Called()
        assert trace.handle_call(called, [1], {"a": 2}) == ((trace, 1), {"a": 2})
