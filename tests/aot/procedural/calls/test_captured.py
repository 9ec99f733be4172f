"""Captured programs of a module: which uses share one, and what importing them all decides."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot
from pelton.aot.capture.arguments import Arguments, TracedInput, flatten_arguments
from pelton.aot.ir.builder import GlobalAttributes
from pelton.aot.ir.module import operations_within
from pelton.aot.procedural.calls.captured import Callee, ProgramTable, _key_of, constant_key
from tests.aot.procedural.traces import new_builder


def tensor(*shape: int | None, dtype: torch.dtype = torch.float32) -> TracedInput:
    return TracedInput(object(), dtype, shape, 7)


def arguments_of(*args: Any, ties: dict[int, int] | None = None, **kwargs: Any) -> Arguments:
    def function(x: Any, y: Any = 0, *, z: Any = 0) -> Any:
        return x

    found = flatten_arguments(function, args, kwargs, None)
    found.ties = ties or {}
    return found


def key(*args: Any, **kwargs: Any) -> list[Any]:
    return list(_key_of(arguments_of(*args, **kwargs)))


INTEGER = TracedInput(object(), size=7)


def test_arguments_of_the_same_types_have_one_key() -> None:
    assert key(tensor(2, None), {"a": 1}) == key(tensor(2, None), {"a": 1})
    assert key(INTEGER) == key(TracedInput(object(), size=11))
    assert key(tensor(2), 0) == key(tensor(2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([tensor(2)], [tensor(3)]),
        ([tensor(7)], [tensor(None)]),
        ([tensor(None, 2)], [tensor(2, None)]),
        ([tensor(2)], [tensor(2, 1)]),
        ([tensor(2)], [tensor(2, dtype=torch.int32)]),
        ([tensor()], [INTEGER]),
        ([INTEGER], [7]),
        ([tensor(2), 1], [tensor(2), 1.0]),
        ([tensor(2), 1], [tensor(2), True]),
        ([tensor(2), [1]], [tensor(2), (1,)]),
        ([tensor(2), {"a": 1}], [tensor(2), {"b": 1}]),
        ([tensor(2), None], [tensor(2), []]),
        ([tensor(2), "1"], [tensor(2), 1]),
    ],
    ids=[
        "size", "dynamic", "axis", "rank", "element_type", "number_or_tensor", "constant",
        "float", "bool", "container", "names", "none", "text",
    ],
)  # fmt: skip
def test_arguments_of_other_types_have_another_key(one: list[Any], other: list[Any]) -> None:
    assert key(*one) != key(*other)


def test_a_tied_argument_has_another_key() -> None:
    args = tensor(2), tensor(2)
    tied = arguments_of(*args, ties={1: 0})
    tied.inputs = tied.inputs[:1]
    assert list(_key_of(tied)) != key(*args)


def test_arguments_that_are_tied_to_others_have_another_key() -> None:
    keys = []
    for first in (0, 1):
        found = arguments_of(tensor(2), tensor(2), z=tensor(2), ties={2: first})
        found.inputs = found.inputs[:2]
        keys.append(list(_key_of(found)))
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, True, False),
        (1, 1.0, False),
        (0.0, -0.0, False),
        (complex(0, 0.0), complex(0, -0.0), False),
        (float("nan"), float("nan"), True),
        (torch.float32, torch.float32, True),
        (torch.float32, torch.float64, False),
        (slice(0, 1), slice(0, 1), True),
        (slice(0, 1), slice(False, 1), False),
        (slice(None), slice(0), False),
    ],
    ids=lambda value: repr(value),
)
def test_constants_share_a_key_where_no_program_can_tell_them_apart(
    one: Any, other: Any, equal: bool
) -> None:
    assert (constant_key(one) == constant_key(other)) is equal


def test_a_constant_without_a_hash_is_its_own_key() -> None:
    one: list[int] = []
    assert constant_key(one) == constant_key(one)
    assert constant_key(one) != constant_key([])


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += x
        return self.count * 2


class Table:
    """A table with one program that changes the buffer of a module."""

    def __init__(self) -> None:
        self.builder = new_builder()
        self.table = ProgramTable.of(self.builder)
        self.counter = Counter()
        self.callee = Callee(self.counter, "counter", state="_counter")
        self.arguments = flatten_arguments(self.counter.forward, [tensor(2)], {}, None)
        self.program = self.table.find(self.callee, self.arguments)


@pytest.fixture(scope="module")
def made() -> Table:
    return Table()


def test_a_module_has_one_table(made: Table) -> None:
    assert ProgramTable.of(made.builder) is made.table
    assert ProgramTable.of(new_builder()) is not made.table
    assert len(ProgramTable.of(new_builder())) == 0


def test_a_program_is_captured_once_for_each_callee_and_types(made: Table) -> None:
    assert made.table.find(made.callee, made.arguments) is made.program
    same = flatten_arguments(made.counter.forward, [tensor(2)], {}, None)
    assert made.table.find(made.callee, same) is made.program
    assert len(made.table) == 1


def test_a_program_knows_what_it_changes_and_its_names(made: Table) -> None:
    (changed,) = made.program.changed
    assert changed is made.counter.count
    assert made.program.symbol == "counter"
    names = made.program.name_of("count")
    assert (names.symbol, names.logical) == ("_counter.count", "count")


def test_what_any_program_changes_becomes_mutable_before_all_are_imported(made: Table) -> None:
    constant = made.builder.tensor_global(made.counter.count, "read", GlobalAttributes())
    assert "is_mutable" not in constant.op.attributes
    assert made.program.function is None
    made.table.import_all()
    assert constant.mutable
    assert "is_mutable" in constant.op.attributes
    function = made.program.function
    assert function is not None
    stores = list(operations_within(function, "util.global.store"))
    assert [str(store.attributes["global"]) for store in stores] == ["@read"]
    assert str(function.attributes["sym_visibility"]) == '"private"'


def test_a_callee_that_cannot_be_captured_leaves_no_program() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("not today")

    table = ProgramTable(new_builder())
    with pytest.raises(aot.ExportError, match="not today"):
        table.find(Callee(fails, "fails"), flatten_arguments(fails, [tensor(2)], {}, None))
    assert len(table) == 0
