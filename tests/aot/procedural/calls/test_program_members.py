"""Exported programs of a class: their entry points, and how procedures call them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from iree.compiler.ir import StringAttr
from torch import nn
from torch.export import Dim, ExportedProgram

from pelton import aot
from pelton.aot.ir.builder import ModuleBuilder
from pelton.aot.procedural.calls.captured import ProgramTable
from pelton.aot.procedural.calls.program_members import ProgramMember
from pelton.aot.procedural.globals.live_globals import live
from pelton.aot.procedural.values.errors import ProcedureTraceError
from tests.aot.procedural.traces import new_builder, shape_of, text_of, tracing


class Mixed(nn.Module):
    def forward(self, x: torch.Tensor, pair: Any, times: int = 2, *, flag: bool) -> Any:
        return {"sum": x * times + pair["a"], "none": None, "list": [pair["b"], "fixed"]}


@pytest.fixture(scope="module")
def exported() -> ExportedProgram:
    rows = Dim("rows")
    return torch.export.export(
        Mixed(),
        (torch.zeros(5, 2), {"a": torch.zeros(5, 2), "b": torch.zeros(3).int()}, 3),
        {"flag": True},
        dynamic_shapes={
            "x": {0: rows},
            "pair": {"a": {0: rows}, "b": None},
            "times": None,
            "flag": None,
        },
    )


@pytest.fixture(scope="module")
def member(exported: ExportedProgram) -> ProgramMember:
    return ProgramMember(new_builder(), "_p", exported)


TYPES = [
    aot.AbstractTensor(None, 2),
    aot.AbstractTensor(None, 2),
    aot.AbstractTensor(3, dtype=torch.int32),
]


def functions(builder: ModuleBuilder) -> dict[str, str]:
    """Return the visibility of the functions of a module by name."""
    return {
        StringAttr(op.attributes["sym_name"]).value: StringAttr(
            op.attributes["sym_visibility"]
        ).value
        if "sym_visibility" in op.attributes
        else "public"
        for op in builder.body.operations
        if op.operation.name == "func.func"
    }


def test_a_name_with_an_underscore_is_no_entry_point(exported: ExportedProgram) -> None:
    builder = new_builder()
    assert ProgramMember(builder, "_hidden", exported).entry is None
    shown = ProgramMember(builder, "shown", exported)
    assert shown.entry is not None
    assert shown.entry.symbol == "shown"
    assert shown.signature.name == "shown"


def test_only_what_is_an_entry_point_or_called_is_imported(exported: ExportedProgram) -> None:
    builder = new_builder()
    table = ProgramTable.of(builder)
    ProgramMember(builder, "_hidden", exported).add_to(table)
    assert len(table) == 0
    ProgramMember(builder, "shown", exported).add_to(table)
    table.import_all()
    assert functions(builder) == {"shown": "public"}


def test_a_call_is_of_a_private_copy_that_all_calls_share(exported: ExportedProgram) -> None:
    with tracing(*TYPES) as trace:
        builder = trace.module_builder
        member = ProgramMember(builder, "shown", exported)
        x, a, b = trace.proxy_posargs
        for _ in range(2):
            member.call(trace, [x, {"a": a, "b": b}, 3], {"flag": True})
        trace.emit_return()
    table = ProgramTable.of(builder)
    member.add_to(table)
    assert len(table) == 2
    table.import_all()
    assert functions(builder) == {"f": "public", "shown": "public", "shown$1": "private"}
    assert len(trace.callees) == 2
    assert trace.callees[0] is trace.callees[1]


def test_the_result_has_the_structure_and_constants_of_the_program(member: ProgramMember) -> None:
    with tracing(*TYPES) as trace:
        x, a, b = trace.proxy_posargs
        result = member.call(trace, [x], {"pair": {"b": b, "a": a}, "times": 3, "flag": True})
        assert list(result) == ["sum", "none", "list"]
        assert shape_of(result["sum"]) == ["?", 2]
        assert (result["none"], result["list"][1]) == (None, "fixed")
        assert (shape_of(result["list"][0]), result["list"][0].dtype) == ([3], torch.int32)


def test_a_torch_tensor_and_a_collection_of_globals_are_arguments(member: ProgramMember) -> None:
    with tracing(aot.AbstractTensor(5, 2)) as trace:
        builder = trace.module_builder
        info = aot.export_global_tree({"a": torch.zeros(5, 2), "b": torch.zeros(3).int()})
        tracked = info.track(builder, "t")
        pair = live({key: one.materialize() for key, one in tracked.items()}, "self.t")
        result = member.call(trace, [torch.ones(5, 2), pair, 3], {"flag": True})
        assert shape_of(result["sum"]) == ["?", 2]
    assert text_of(trace).count("util.global.load") == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": 2}, "calling _p: argument times is fixed to 3"),
        ({"flag": False}, "calling _p: argument flag is fixed to True"),
        ({"pair": {}}, "calling _p: .*; it takes "),
        ({"pair": None}, "calling _p: .*pair"),
        ({"more": 1}, "calling _p: .*more.*; it takes "),
        ({"x": "text"}, "text"),
        ({"x": 1.5}, r"argument x expects float32\[\?, 2\]"),
    ],
    ids=["constant", "flag", "keys", "structure", "name", "type", "number"],
)
def test_arguments_that_do_not_fit_are_refused(
    member: ProgramMember, change: dict[str, Any], message: str
) -> None:
    with tracing(*TYPES) as trace:
        x, a, b = trace.proxy_posargs
        fitting = {"x": x, "pair": {"a": a, "b": b}, "times": 3, "flag": True}
        with pytest.raises(ProcedureTraceError, match=message):
            member.call(trace, [], fitting | change)


def test_a_traced_value_cannot_be_given_for_a_constant(member: ProgramMember) -> None:
    with tracing(*TYPES, aot.AbstractI64) as trace:
        x, a, b, n = trace.proxy_posargs
        for value in (n, x):
            with pytest.raises(ProcedureTraceError, match="argument times is fixed to 3"):
                member.call(trace, [x, {"a": a, "b": b}, value], {"flag": True})


def test_a_constant_of_another_type_is_refused(member: ProgramMember) -> None:
    with tracing(*TYPES) as trace:
        x, a, b = trace.proxy_posargs
        with pytest.raises(ProcedureTraceError, match="argument flag is fixed to True"):
            member.call(trace, [x, {"a": a, "b": b}, 3], {"flag": 1})


class Listed(nn.Module):
    def forward(self, values: list[torch.Tensor]) -> torch.Tensor:
        return values[0] + values[1]


def test_one_list_may_be_given_as_its_entries() -> None:
    exported = torch.export.export(Listed(), ([torch.zeros(2), torch.zeros(2)],))
    types = aot.AbstractTensor(2), aot.AbstractTensor(2)
    with tracing(*types) as trace:
        member = ProgramMember(trace.module_builder, "p", exported)
        x, y = trace.proxy_posargs
        assert shape_of(member.call(trace, [x, y], {})) == [2]
        assert shape_of(member.call(trace, [[x, y]], {})) == [2]
        with pytest.raises(ProcedureTraceError, match=r"calling p: .*; it takes \(values\)"):
            member.call(trace, [x, y, x], {})
