"""Modules under construction: what is declared, and which state each function mutates."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from iree.compiler.ir import Module
from torch import nn

from pelton import aot
from pelton.aot.ir.builder import ModuleBuilder
from pelton.aot.ir.module import signatures_of
from pelton.aot.procedural.module.instance import ModuleInstance
from tests.aot.procedural.traces import new_builder


def declared(builder: ModuleBuilder | None = None, **members: Any) -> ModuleInstance:
    made = aot.CompiledModule.create_from_dict("Case", members)
    return ModuleInstance(aot.CompiledModule.get_class_info(made), builder or new_builder())


def built(**members: Any) -> ModuleInstance:
    instance = declared(**members)
    instance.build()
    return instance


def mutates(instance: ModuleInstance) -> dict[str, tuple[str, ...]]:
    found = signatures_of(instance.builder.module_op)
    return {name: s.mutates for name, s in found.items() if not name.startswith("pelton.")}


def state(value: Any) -> Any:
    return aot.export_global(value, mutable=True)


def test_procedures_are_declared_before_any_is_traced() -> None:
    def first(self: Any) -> Any:
        return self.second()

    def second(self: Any) -> Any:
        return 1

    instance = declared(first=first, second=second)
    instance._declare()
    assert list(instance.procedures) == list(instance.state.callables) == ["first", "second"]
    text = str(instance.builder.module_op)
    assert '"first"' in text
    assert '"second"' in text
    assert "func.return" not in text


def test_state_is_named_in_the_order_of_the_module() -> None:
    def stores(self: Any) -> None:
        self.b = 1
        self.a = 2
        self.b = 3

    def nothing(self: Any) -> Any:
        return self.a

    instance = built(a=state(1), b=state(2), c=state(3), stores=stores, nothing=nothing)
    assert mutates(instance) == {"stores": ("a", "b"), "nothing": ()}


def test_state_that_callees_mutate_counts_whatever_is_traced_first() -> None:
    def top(self: Any) -> None:
        self.middle()
        self.middle()

    def middle(self: Any) -> None:
        self.c = 1
        self.bottom()

    def bottom(self: Any) -> None:
        self.a = 1

    instance = built(a=state(1), b=state(2), c=state(3), top=top, middle=middle, bottom=bottom)
    assert mutates(instance) == {"top": ("a", "c"), "middle": ("a", "c"), "bottom": ("a",)}


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += x
        return self.count * 1


def test_state_of_modules_and_programs_counts() -> None:
    program = torch.export.export(Counter(), (torch.ones(1),))

    def calls(self: Any, x: Any = aot.AbstractTensor(1)) -> Any:
        return self.net(x)

    def calls_program(self: Any, x: Any = aot.AbstractTensor(1)) -> Any:
        return self.program(x)

    instance = built(net=Counter(), program=program, calls=calls, calls_program=calls_program)
    found = mutates(instance)
    assert len(found["calls"]) == len(found["program"]) == 1
    assert found["calls_program"] == found["program"] != found["calls"]


def test_a_function_that_the_module_has_already_is_refused() -> None:
    module = Module.parse("func.func @f() { return }", new_builder().context)
    instance = declared(ModuleBuilder(module.operation), f=lambda self: None)
    with pytest.raises(aot.ExportError, match="Case exports the name 'f' twice"):
        instance.build()


def test_a_class_without_members_is_an_empty_module() -> None:
    instance = built()
    assert list(instance.builder.body.operations) == []
    assert (instance.procedures, instance.programs, instance.state.globals) == ({}, {}, {})


def test_a_failing_procedure_has_the_users_line() -> None:
    def f(self: Any) -> Any:
        return object()

    with pytest.raises(aot.ExportError, match=r"f\(\): a result is a object") as caught:
        built(f=f)
    assert caught.value.location is not None
