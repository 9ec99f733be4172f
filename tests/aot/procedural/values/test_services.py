"""Regions of a trace: which of them see the values of another."""

from __future__ import annotations

import inspect

import pytest

from pelton.aot.procedural.module.trace import IrTrace
from pelton.aot.procedural.values.services import Scope, TraceServices
from tests.aot.procedural.traces import tracing


def test_a_region_encloses_itself_and_what_is_nested_in_it() -> None:
    body = Scope()
    loop = Scope(body)
    branch = Scope(loop)
    assert body.encloses(body)
    assert body.encloses(loop)
    assert body.encloses(branch)
    assert loop.encloses(branch)


def test_a_region_does_not_enclose_its_parent_its_sibling_or_nothing() -> None:
    body = Scope()
    left, right = Scope(body), Scope(body)
    assert not left.encloses(body)
    assert not left.encloses(right)
    assert not left.encloses(Scope(right))
    assert not body.encloses(Scope())
    assert not body.encloses(None)


SERVICES = [name for name in vars(TraceServices) if not name.startswith("_")]


@pytest.mark.parametrize("name", [*SERVICES, *TraceServices.__annotations__])
def test_a_trace_has_every_service(name: str) -> None:
    with tracing() as trace:
        assert hasattr(trace, name)


@pytest.mark.parametrize(
    "name", [n for n in SERVICES if inspect.isfunction(vars(TraceServices)[n])]
)
def test_a_trace_takes_the_arguments_of_every_service(name: str) -> None:
    stated = inspect.signature(getattr(TraceServices, name)).parameters
    actual = inspect.signature(getattr(IrTrace, name)).parameters
    assert list(actual) == list(stated)
    assert [p.default for p in actual.values()] == [p.default for p in stated.values()]
