"""Side effects of traced functions: each kind is refused by its name, reading is not."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.capture.side_effects import (
    SideEffects,
    side_effects_undone,
    version_of,
)

COUNTER = [0]
TABLE: dict[str, int] = {}
TENSOR = torch.zeros(2)
MODULE = torch.nn.Linear(2, 2)
SCALE = 1


@dataclasses.dataclass
class Box:
    value: Any


def run(function: Callable[..., Any], holder: torch.nn.Module | None = None, **given: Any) -> None:
    effects = SideEffects(function, holder)
    effects.start(given)
    function(**given)
    effects.check(given)


def changes(function: Callable[..., Any], *names: str, **given: Any) -> None:
    with pytest.raises(aot.ExportError, match="which a compiled function cannot do") as caught:
        run(function, **given)
    listed = str(caught.value).partition("the function changes ")[2].partition(", which")[0]
    assert listed.split(", ") == list(names)


def test_reading_is_no_side_effect() -> None:
    def reads(x: torch.Tensor, items: list[int]) -> Any:
        return x + COUNTER[0] + TENSOR.sum() + len(TABLE) + MODULE.weight.sum() + sum(items) + SCALE

    run(reads, x=torch.ones(2), items=[1])


def test_a_changed_argument_is_named() -> None:
    changes(lambda x: x.add_(1), "argument x", x=torch.ones(2))
    changes(lambda x: x.append(1), "argument x", x=[1])
    changes(lambda x: x.update(a=2), "argument x", x={"a": 1})
    changes(lambda x: x.add(2), "argument x", x={1})


def test_the_innermost_changed_place_is_named() -> None:
    changes(lambda x: x[0].add_(1), "argument x[0]", x=[torch.ones(2)])
    changes(lambda x: x["a"].append(1), "argument x['a']", x={"a": []})
    changes(lambda x: x.value.add_(1), "argument x.value", x=Box(torch.ones(2)))
    changes(lambda x: setattr(x, "value", 2), "argument x.value", x=Box(1))


def test_parts_of_a_changed_container_are_not_named_besides() -> None:
    changes(lambda x: x.__setitem__(0, 7), "argument x", x=[1, 2])


def test_removed_items_are_changes() -> None:
    changes(lambda x: x.clear(), "argument x", x=[1, 2])


def test_a_list_that_contains_itself_is_compared() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    run(lambda x: len(x), x=loop)
    changes(lambda x: x.append(2), "argument x", x=loop)


def test_changed_globals_are_named() -> None:
    def rebinds() -> None:
        global SCALE
        SCALE += 1

    def appends() -> None:
        COUNTER.append(1)

    def stores() -> None:
        TABLE["a"] = 1

    def adds() -> None:
        TENSOR.add_(1)

    try:
        changes(rebinds, "global 'SCALE'")
        changes(appends, "global 'COUNTER'")
        changes(stores, "global 'TABLE'")
        changes(adds, "global 'TENSOR'")
    finally:
        TABLE.clear()


def test_a_global_named_in_an_inner_function_is_seen() -> None:
    def outer() -> None:
        def inner() -> None:
            COUNTER.append(1)

        inner()

    changes(outer, "global 'COUNTER'")


def test_a_new_global_is_a_change() -> None:
    def defines() -> None:
        globals()["FRESH_NAME"] = 1

    try:
        changes(defines, "global 'FRESH_NAME'")
    finally:
        globals().pop("FRESH_NAME", None)


def test_changed_closures_are_named() -> None:
    count, items = 0, [1]

    def rebinds() -> None:
        nonlocal count
        count += 1

    def appends() -> None:
        items.append(1)

    changes(rebinds, "closure variable 'count'")
    changes(appends, "closure variable 'items'")


def test_an_unassigned_closure_variable_is_passed_over() -> None:
    def reads() -> Any:
        return later if SCALE < 0 else 1

    run(reads)
    later = 1


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.calls = 0
        self.inner = torch.nn.Linear(1, 1)

    def counts(self) -> None:
        self.calls += 1

    def updates(self) -> None:
        self.count.add_(1)

    def adds_attribute(self) -> None:
        self.inner.note = 1  # type: ignore[assignment]


def test_attributes_of_the_module_are_named_and_buffers_may_change() -> None:
    module = Counting()
    run(module.updates, holder=module)
    changes(module.counts, "self.calls")
    changes(module.adds_attribute, "self.inner.note")


def test_attributes_of_other_owners_are_named() -> None:
    class Owner:
        def __init__(self) -> None:
            self.calls = 0

        def call(self) -> None:
            self.calls += 1

    changes(Owner().call, "self.calls")


def test_state_of_another_module_is_named() -> None:
    def updates() -> None:
        with torch.no_grad():
            MODULE.bias.add_(1)

    changes(updates, "global 'MODULE'.bias")


def test_the_message_has_the_line_of_the_function() -> None:
    with pytest.raises(aot.ExportError) as caught:
        run(_appends, x=[])
    assert caught.value.location is not None
    assert caught.value.location.line == _appends.__code__.co_firstlineno
    assert caught.value.location.file == __file__


def _appends(x: list[int]) -> None:
    x.append(1)


def test_versions_of_tensors() -> None:
    x = torch.zeros(2)
    assert version_of(x) == 0 and version_of([x]) == 0 and version_of(None) == 0
    x.add_(1)
    assert version_of(x) == 1
    with torch.inference_mode():
        assert version_of(torch.zeros(2)) == 0


# What is undone


class Caching(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.zeros(1)
        self.by_size: dict[int, Any] = {1: torch.ones(1)}
        self.past: list[Any] = [[1], (Box(2),)]
        self.recent = collections.deque([1, 2], maxlen=2)
        self.sizes = {1}
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.table, self.made = x + 1, x
        self.count = self.count + 1
        self.by_size[2] = self.by_size.pop(1)
        self.past[0].append(x)
        self.past[1][0].value = x
        self.past.append(x)
        self.recent.append(x)
        self.sizes.add(2)
        return x


def test_attributes_and_contents_of_containers_are_put_back() -> None:
    owner = torch.nn.Module()
    owner.blocks = [Caching()]  # a list, which torch does not look into
    (model,) = owner.blocks
    before = dict(vars(model))
    box = model.past[1][0]
    with pytest.raises(KeyError), side_effects_undone(lambda x: owner.blocks[0](x), None):
        model(torch.ones(1))
        raise KeyError
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    assert [*model.by_size] == [1] and model.past[0] == [1] and len(model.past) == 2
    assert box.value == 2 and [*model.recent] == [1, 2] and model.sizes == {1}
    assert model.count.item() == 0


def test_a_global_container_is_put_back() -> None:
    def note(x: int) -> None:
        TABLE["a"] = x

    with side_effects_undone(note, None):
        note(1)
        assert TABLE["a"] == 1
    assert "a" not in TABLE
