"""The `self` of a procedure: globals, the class's own members, hints, and modules of the class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot
from pelton.aot.procedural.globals.live_globals import IrGlobalScalar, LiveGlobalCollectionProxy
from pelton.aot.procedural.module.module_state import ModuleState
from pelton.aot.procedural.module.procedure_trace import ProcedureTrace
from pelton.aot.procedural.module.view import ModuleMember, ProcedureSelf
from pelton.aot.procedural.values.errors import ProcedureTraceError
from tests.aot.procedural.traces import names_of, tracing


class Descriptor:
    def __get__(self, instance: Any, owner: type) -> Any:
        return type(instance).__name__, owner.__name__


NET = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))


class Base(aot.CompiledModule):
    def name_of(self) -> str:
        return "base"


class Sample(Base):
    count = aot.export_global(1, mutable=True)
    fixed = aot.export_global(2)
    tree = aot.export_global_tree({"a": [1, 2]}, mutable=True)
    constant = (1, 2)
    net = NET
    named = nn.ModuleDict({"first": nn.ReLU(), "second": nn.Tanh()})
    described = Descriptor()

    def helper(self, value: Any = 1) -> Any:
        return self, value

    def name_of(self) -> str:
        return f"{super().name_of()}+derived"

    @staticmethod
    def static(value: Any) -> Any:
        return value

    @classmethod
    def of_class(cls) -> Any:
        return cls

    @property
    def doubled(self) -> Any:
        return self.constant * 2


@pytest.fixture
def trace() -> Iterator[ProcedureTrace]:
    with tracing() as found:
        yield found


@pytest.fixture
def view(trace: ProcedureTrace) -> Any:
    decl = aot.CompiledModule.get_class_info(Sample)
    state = ModuleState(decl, trace.module_builder)
    for name, info in decl.globals.items():
        state.globals[name] = info.track(trace.module_builder, name)
    return ProcedureSelf(state, trace)


def test_globals_are_live(view: Any) -> None:
    assert isinstance(view.count, IrGlobalScalar)
    assert isinstance(view.tree, LiveGlobalCollectionProxy)
    assert view.tree["a"][1].symbol_name == "_tree.a.1"
    with pytest.raises(KeyError, match=r"self\.tree\['a'\] has no 2"):
        view.tree["a"][2]


def test_members_of_the_class_work_as_in_any_instance(view: Any) -> None:
    assert view.constant is Sample.constant
    assert view.doubled == (1, 2, 1, 2)
    assert view.static("x") == "x"
    assert view.of_class() is Sample
    assert view.described == ("ProcedureSelf", "Sample")
    assert view.name_of() == "base+derived"
    itself, value = view.helper(value=3)
    assert (itself is view, value) == (True, 3)


def test_it_is_an_instance_of_the_users_class(view: Any) -> None:
    assert isinstance(view, Sample)
    assert view.__class__ is Sample
    assert repr(view) == "<self of Sample.f()>"


def test_a_name_that_is_not_declared_is_told_with_a_close_one(view: Any) -> None:
    with pytest.raises(
        ProcedureTraceError,
        match=r"f\(\): self\.cuont is not declared in the class; did you mean self\.count\?",
    ):
        _ = view.cuont
    with pytest.raises(ProcedureTraceError, match=r"self\.zzz is not declared in the class \(at"):
        _ = view.zzz


def test_only_mutable_globals_can_be_assigned(view: Any, trace: ProcedureTrace) -> None:
    view.count = 5
    assert names_of(trace, "func.func") == ["util.global.store"]
    with pytest.raises(ProcedureTraceError, match=r"self\.fixed is immutable"):
        view.fixed = 5
    with pytest.raises(
        ProcedureTraceError,
        match=r"self\.constants cannot be assigned: it is no global\. .* mean self\.constant\?",
    ):
        view.constants = 5
    assert names_of(trace, "func.func") == ["util.global.store"]


def test_augmented_assignment_loads_and_stores(view: Any, trace: ProcedureTrace) -> None:
    view.count += 2
    assert names_of(trace, "func.func") == ["util.global.load", "arith.addi", "util.global.store"]
    assert trace.stores == {"_count.global"}


def test_a_callable_of_the_module_is_called_with_the_trace(view: Any, trace: Any) -> None:
    calls: list[Any] = []

    class Recorder:
        def call(self, caller: Any, args: Any, kwargs: Any) -> Any:
            calls.append((caller, args, kwargs))
            return "result"

    state, _ = object.__getattribute__(view, "_view")
    state.callables["helper"] = Recorder()
    assert view.helper(1, trace=2, name=3) == "result"
    assert calls == [(trace, (1,), {"trace": 2, "name": 3})]


# Modules of the class


def parts(member: Any) -> tuple[nn.Module, str, str]:
    """Return the module, the path and the prefix of symbols of a member."""
    assert isinstance(member, ModuleMember)
    _, module, path, state = member._member
    return module, path, state


def test_parts_of_a_module_are_named_by_their_path(view: Any) -> None:
    assert parts(view.net) == (NET, "net", "_net")
    assert parts(view.net[1][0]) == (NET[1][0], "net.1.0", "_net.1.0")
    assert parts(view.named.first)[1:] == ("named.first", "_named.first")
    assert parts(view.named["second"])[1:] == ("named.second", "_named.second")


def test_a_modules_own_attributes_are_as_they_are(view: Any) -> None:
    assert view.net[0].weight is NET[0].weight
    assert view.net[0].in_features == 2
    with pytest.raises(AttributeError, match="nothing"):
        _ = view.net.nothing
    with pytest.raises(IndexError):
        _ = view.net[2]


def test_containers_of_modules_are_iterated_as_in_torch(view: Any) -> None:
    assert len(view.net) == 2
    assert [parts(layer)[1] for layer in view.net] == ["net.0", "net.1"]
    assert list(view.named) == ["first", "second"]
    assert "second" in view.named
    assert [parts(layer)[1] for layer in view.net[1]] == ["net.1.0", "net.1.1"]


def test_a_call_and_a_method_are_calls_of_functions_named_by_the_path(
    view: Any, trace: ProcedureTrace
) -> None:
    view.net[1][0](torch.zeros(2))
    view.net[1][0].forward(torch.zeros(2))
    assert [callee.symbol for callee in trace.callees] == ["net.1.0", "net.1.0.forward"]
