"""Calls of captured programs: conversions, checks of sizes and ranges, results and aliases."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from pelton import aot
from pelton.aot.procedural.calls.program_members import ProgramMember
from pelton.aot.procedural.module.procedure_trace import ProcedureTrace
from pelton.aot.procedural.values.errors import ProcedureTraceError
from pelton.aot.procedural.values.tensors import MAY_ALIAS_ANY, NO_ALIAS
from tests.aot.procedural.traces import names_of, new_builder, required, scalar, shape_of, tracing


class Sizes(nn.Module):
    """Takes `n` rows twice, and one row more."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, longer: torch.Tensor, k: int) -> Any:
        return x + y, longer[1:] * k, x.T, x.shape[0] * 2, k


@pytest.fixture(scope="module")
def sizes() -> ProgramMember:
    n = Dim("n", min=2, max=64)
    exported = torch.export.export(
        Sizes(),
        (torch.zeros(5, 3), torch.zeros(5, 3), torch.zeros(6, 3), 4),
        dynamic_shapes={"x": {0: n}, "y": {0: n}, "longer": {0: n + 1}, "k": Dim.DYNAMIC},
    )
    return ProgramMember(new_builder(), "_p", exported)


def called(member: ProgramMember, trace: ProcedureTrace, *args: Any) -> Any:
    return member.call(trace, args, {})


INTEGER = "calling _p: a size or integer must be at least 0"
"""The check of `k`, which is made when the program runs whatever is given."""


def rows(*sizes: int | None, columns: int = 3) -> list[Any]:
    return [aot.AbstractTensor(size, columns) for size in sizes]


def test_static_sizes_that_fit_need_no_check_when_the_program_runs(sizes: ProgramMember) -> None:
    with tracing(*rows(4, 4, 5)) as trace:
        called(sizes, trace, *trace.proxy_posargs, 7)
        assert required(trace) == [INTEGER]


def test_dynamic_sizes_are_checked_when_the_program_runs(sizes: ProgramMember) -> None:
    with tracing(*rows(None, None, None)) as trace:
        called(sizes, trace, *trace.proxy_posargs, 7)
        messages = required(trace)
    assert len(messages) == 5
    assert messages[0].startswith("calling _p: dimension 0 of argument y")
    assert messages[1].startswith("calling _p: dimension 0 of argument longer")
    assert messages[2:] == [
        "calling _p: a size or integer must be at least 2",
        "calling _p: a size or integer must be at most 64",
        INTEGER,
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((4, 5, 5), "dimension 0 of argument y"),
        ((4, 4, 4), "dimension 0 of argument longer"),
        ((1, 1, 2), "a size or integer must be at least 2"),
        ((65, 65, 66), "a size or integer must be at most 64"),
    ],
    ids=["equal", "derived", "least", "most"],
)
def test_static_sizes_that_do_not_fit_are_refused_now(
    sizes: ProgramMember, given: tuple[int, int, int], message: str
) -> None:
    with tracing(*rows(*given)) as trace:
        with pytest.raises(ProcedureTraceError, match=f"calling _p: {message}"):
            called(sizes, trace, *trace.proxy_posargs, 7)
        assert "func.call" not in names_of(trace)


@pytest.mark.parametrize("n", [2, 64])
def test_the_ends_of_a_range_belong_to_it(sizes: ProgramMember, n: int) -> None:
    with tracing(*rows(n, n, n + 1)) as trace:
        called(sizes, trace, *trace.proxy_posargs, 7)
        assert "func.call" in names_of(trace)


@pytest.mark.parametrize(
    ("type_", "got"),
    [
        (aot.AbstractTensor(4, 3, dtype=torch.float64), r"float64\[4, 3\]"),
        (aot.AbstractTensor(4, 3, 1), r"float32\[4, 3, 1\]"),
        (aot.AbstractTensor(4), r"float32\[4\]"),
    ],
    ids=["element_type", "longer", "shorter"],
)
def test_an_argument_of_another_type_is_refused(sizes: ProgramMember, type_: Any, got: str) -> None:
    with tracing(type_, *rows(4, 5)) as trace:
        x, y, longer = trace.proxy_posargs
        message = rf"calling _p: argument x expects float32\[\?, 3\], got .*{got}"
        with pytest.raises(ProcedureTraceError, match=message):
            called(sizes, trace, x, y, longer, 7)


def test_a_size_that_the_program_fixes_is_checked(sizes: ProgramMember) -> None:
    with tracing(*rows(4, 4, 5, columns=2)) as trace:
        with pytest.raises(ProcedureTraceError, match="dimension 1 of argument x"):
            called(sizes, trace, *trace.proxy_posargs, 7)
    with tracing(aot.AbstractTensor(4, None), *rows(4, 5)) as trace:
        called(sizes, trace, *trace.proxy_posargs, 7)
        message, *_ = required(trace)
        assert message.startswith("calling _p: dimension 1 of argument x")


def test_a_tensor_given_for_an_integer_is_refused(sizes: ProgramMember) -> None:
    with tracing(*rows(4, 4, 5)) as trace:
        x, y, longer = trace.proxy_posargs
        message = "argument k expects int, got"
        with pytest.raises(ProcedureTraceError, match=message):
            called(sizes, trace, x, y, longer, x)


@pytest.mark.parametrize("kind", ["i32", "index", "i64"])
def test_an_integer_of_any_width_is_passed(sizes: ProgramMember, kind: str) -> None:
    with tracing(*rows(4, 4, 5)) as trace:
        called(sizes, trace, *trace.proxy_posargs, scalar(trace, 7, kind))
        assert names_of(trace).count("torch_c.from_i64") == 1


def test_results_have_the_sizes_that_the_arguments_have(sizes: ProgramMember) -> None:
    with tracing(*rows(None, None, None)) as trace:
        x, y, longer = trace.proxy_posargs
        total, scaled, turned, twice, k = called(sizes, trace, x, y, longer, 7)
        assert shape_of(total) == ["?", 3]
        assert shape_of(turned) == [3, "?"]
        assert total.known_dim_values() == {0: x.get_dim_value(0)}
        assert turned.known_dim_values() == {1: x.get_dim_value(0)}
        assert shape_of(scaled) == ["?", 3]
        assert (twice.kind, k.kind) == ("i64", "i64")


def test_a_view_of_an_argument_may_share_its_memory(sizes: ProgramMember) -> None:
    with tracing(*rows(4, 4, 5)) as trace:
        info = aot.export_global(torch.zeros(4, 3))
        x = info.track(trace.module_builder, "g").materialize()
        _, y, longer = trace.proxy_posargs
        assert y.may_alias == MAY_ALIAS_ANY
        total, _, turned, _, _ = called(sizes, trace, x, y, longer, 7)
        assert total.may_alias == NO_ALIAS
        assert turned.may_alias == {"_g.global"}


class Changing(nn.Module):
    def forward(self, cache: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        cache[0] = x
        return cache * 2


def test_a_changed_argument_gets_its_new_value() -> None:
    exported = torch.export.export(Changing(), (torch.zeros(2, 3), torch.zeros(3)))
    member = ProgramMember(new_builder(), "_p", exported)
    with tracing(aot.AbstractTensor(3)) as trace:
        info = aot.export_global(torch.zeros(2, 3), mutable=True)
        cache = info.track(trace.module_builder, "g").materialize()
        result = called(member, trace, cache, trace.proxy_posargs[0])
        assert shape_of(result) == [2, 3]
        assert trace.stores == {"_g.global"}
