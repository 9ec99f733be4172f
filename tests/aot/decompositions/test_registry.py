"""Families of decompositions, and the chain of their entries."""

import pytest
import torch

from pelton.aot.decompositions.registry import Entry, Family, chain, present

aten = torch.ops.aten


def test_the_first_entry_that_applies_decides():
    family = Family("example")

    @family.decomposes(aten.neg.default, reason="for negative numbers")
    def negative(x):
        return "negative" if x < 0 else NotImplemented

    @family.decomposes(aten.neg.default, aten.abs.default, reason="for zero")
    def zero(x):
        return "zero" if x == 0 else NotImplemented

    table = chain(family.entries)
    assert [table[aten.neg.default](x) for x in (-1, 0)] == ["negative", "zero"]
    assert table[aten.neg.default](1) is NotImplemented
    assert table[aten.abs.default] is zero
    assert [entry.reason for entry in family.entries] == [
        "for negative numbers", "for zero", "for zero",
    ]  # fmt: skip


def test_entries_of_earlier_families_come_first():
    earlier = Entry(aten.neg.default, lambda x: 1, "earlier")
    later = Entry(aten.neg.default, lambda x: 2, "later")
    assert chain([earlier, later])[aten.neg.default](0) == 1
    assert chain([later, earlier])[aten.neg.default](0) == 2


def test_keywords_reach_each_candidate():
    entries = [
        Entry(aten.sum.default, lambda x, *, dtype=None: NotImplemented, "no"),
        Entry(aten.sum.default, lambda x, *, dtype=None: dtype, "yes"),
    ]
    assert chain(entries)[aten.sum.default](0, dtype=torch.int8) is torch.int8


@pytest.mark.parametrize(
    ("operator", "args", "kwargs"),
    [
        (aten._to_copy.default, (), {"dtype": torch.int8}),
        (aten.to.dtype, (torch.int8,), {}),
        (torch.ops.prims.convert_element_type.default, (torch.int8,), {}),
    ],
    ids=str,
)
def test_conversions_receive_the_type_wherever_it_is_given(operator, args, kwargs):
    family = Family("example")
    family.converts(reason="example")(lambda x, wanted: wanted)
    table = chain(family.entries)
    assert table[operator](torch.ones(1), *args, **kwargs) is torch.int8


def test_conversions_without_a_type_are_left_alone():
    family = Family("example")
    family.converts(reason="example")(lambda x, wanted: wanted)
    assert chain(family.entries)[aten._to_copy.default](torch.ones(1)) is NotImplemented


def test_operators_that_a_version_lacks_are_left_out():
    assert present("square", "no_such_operator", "abs") == [aten.square.default, aten.abs.default]
