"""Globals as procedures see them: loads, stores, collections, and stores of whole trees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.ir.module import operations_within
from pelton.aot.procedural.globals.declaration import GlobalsDef, TrackedGlobal
from pelton.aot.procedural.globals.live_globals import (
    IrGlobalScalar,
    IrGlobalTensor,
    LiveGlobalCollectionProxy,
    assign_tree,
    live,
    plain_tree,
)
from pelton.aot.procedural.module.procedure_trace import ProcedureTrace
from pelton.aot.procedural.values.errors import ProcedureTraceError
from tests.aot.procedural.traces import names_of, scalar, text_of, tracing


@contextmanager
def declared(tree: Any, *types: Any, mutable: bool = True) -> Iterator[tuple[ProcedureTrace, Any]]:
    """Trace a procedure of a module with a tree of globals; yield it with the tree's view."""
    with tracing(*types) as trace:
        info = aot.export_global_tree(tree, mutable=mutable)
        raw = _materialized(info, trace)
        yield trace, live(raw, "self.t")


def _materialized(info: GlobalsDef, trace: ProcedureTrace) -> Any:
    def one(value: Any) -> Any:
        if isinstance(value, TrackedGlobal):
            return value.materialize()
        if isinstance(value, dict):
            return {key: one(child) for key, child in value.items()}
        return type(value)(map(one, value))

    return one(info.track(trace.module_builder, "t"))


def accesses(trace: ProcedureTrace) -> list[str]:
    """Return the loads and stores of a procedure in order, as in `load b.0`."""
    found = operations_within(trace.func_op.operation, "util.global.load", "util.global.store")
    return [
        f"{op.name.rpartition('.')[2]} {str(op.attributes['global']).removeprefix('@_t.')}"
        for op in found
    ]


# One global


def test_a_global_is_loaded_where_it_is_used_and_not_before() -> None:
    with declared([torch.zeros(2), 1]) as (trace, t):
        _, number = t[0], t[1]
        assert accesses(trace) == []
        assert str(number.ir_value.type) == "i64"
        assert accesses(trace) == ["load 1"]


def test_loads_with_no_store_between_them_are_known_to_be_equal() -> None:
    with declared([1, 2]) as (_, t):
        before = t[0].affine()
        assert before == t[0].affine()
        assert before != t[1].affine()
        t[1].set(7)
        assert before == t[0].affine()
        t[0].set(7)
        assert before != t[0].affine()


def test_a_number_is_converted_to_the_type_of_the_global() -> None:
    with declared([aot.AbstractI32, 0.5, False]) as (trace, t):
        t[0].set(3)
        t[1].set(2)
        t[2].set(True)
        assert accesses(trace) == ["store 0", "store 1", "store 2"]
        assert trace.stores == {"_t.0", "_t.1", "_t.2"}
        for constant in ("3 : i32", "2.000000e+00 : f32", "value = true"):
            assert constant in text_of(trace)


def test_a_scalar_of_another_type_is_refused_before_the_store() -> None:
    with declared([aot.AbstractI32]) as (trace, t):
        with pytest.raises(ProcedureTraceError, match=r"f\(\): self\.t takes i32, got"):
            t[0].set(scalar(trace, 1.5, "f32"))
        with pytest.raises(ProcedureTraceError, match=r"self\.t"):
            t[0].set("text")
        assert trace.stores == set()


@pytest.mark.parametrize(
    "value",
    [torch.zeros(3), torch.zeros(2, 1), torch.zeros(2).int()],
    ids=["size", "rank", "element_type"],
)
def test_a_tensor_of_another_type_is_refused_before_the_store(value: torch.Tensor) -> None:
    with declared([torch.zeros(2)]) as (trace, t):
        with pytest.raises(ProcedureTraceError, match=r"self\.t expects float32\[2\], got"):
            t[0].assign(value)
        assert trace.stores == set()


def test_an_immutable_global_cannot_be_stored_to() -> None:
    with declared([torch.zeros(2), 1], mutable=False) as (trace, t):
        message = r"self\.t is immutable and cannot be stored to; declare it with mutable=True"
        with pytest.raises(ProcedureTraceError, match=message):
            t[0].assign(torch.zeros(2))
        with pytest.raises(ProcedureTraceError, match=message):
            t[1].set(2)
        with pytest.raises(ProcedureTraceError, match=message):
            t[0].assign(t[0])
        assert accesses(trace) == []


def test_a_global_assigned_to_itself_is_left() -> None:
    with declared([torch.zeros(2)]) as (trace, t):
        t[0].assign(t[0])
        assert accesses(trace) == []
        assert trace.stores == set()


def test_another_global_is_copied_and_an_own_result_is_not() -> None:
    with declared([torch.zeros(2), torch.ones(2)]) as (trace, t):
        t[0].assign(aot.IREE.tensor_splat(2, value=1.0, dtype=torch.float32))
        assert "arith.select" not in names_of(trace)
        t[0].assign(t[1])
        assert names_of(trace).count("arith.select") == 1


def test_bools_are_loaded_as_bools_and_held_as_bytes() -> None:
    with declared([torch.tensor([True, False])]) as (trace, t):
        assert str(t[0].ir_value.type) == "tensor<2xi1>"
        assert (t[0].dtype, t[0].may_alias) == (torch.bool, {"_t.0"})
        t[0].assign(torch.tensor([False, True]))
        assert "util.global.store" in text_of(trace)
        assert ": tensor<2xi8>" in text_of(trace)


# Collections


def test_a_collection_has_the_members_of_its_container() -> None:
    with declared({"a": [1, 2], "b": (), "c": torch.zeros(2)}) as (_, t):
        assert (len(t), list(t), t.keys()) == (3, ["a", "b", "c"], ["a", "b", "c"])
        assert "a" in t
        assert "z" not in t
        assert isinstance(t["a"], LiveGlobalCollectionProxy)
        assert isinstance(t["c"], IrGlobalTensor)
        assert [type(value) for value in t.values()] == [
            LiveGlobalCollectionProxy,
            LiveGlobalCollectionProxy,
            IrGlobalTensor,
        ]
        assert [key for key, _ in t.items()] == ["a", "b", "c"]
        assert [one.symbol_name for one in t["a"]] == ["_t.a.0", "_t.a.1"]
        assert t["a"][-1].symbol_name == "_t.a.1"
        assert [one.symbol_name for one in t["a"][1:]] == ["_t.a.1"]
        assert (len(t["b"]), list(t["b"])) == (0, [])
        assert repr(t["b"]) == "<globals self.t['b']: ()>"


@pytest.mark.parametrize(
    ("path", "key", "message"),
    [
        ((), "c", r"self\.t has no 'c'; it has: 'a', 'b'"),
        (("a",), 2, r"self\.t\['a'\] has no 2; it has: 0, 1"),
        (("a",), "x", r"self\.t\['a'\] has no 'x'; it has: 0, 1"),
        (("b",), 0, r"self\.t\['b'\] has no 0; it has: $"),
        ((), [], r"self\.t has no \[\]; it has: 'a', 'b'"),
    ],
    ids=["key", "index", "type", "empty", "unhashable"],
)
def test_a_member_that_is_not_there_is_told_with_those_that_are(
    path: tuple[str, ...], key: Any, message: str
) -> None:
    with declared({"a": [1, 2], "b": []}) as (_, t):
        for step in path:
            t = t[step]
        with pytest.raises(KeyError) as caught:
            t[key]
        assert re.search(message, caught.value.args[0])


def test_an_assignment_to_an_index_stores() -> None:
    with declared({"a": [1, torch.zeros(2)]}) as (trace, t):
        t["a"][0] = 5
        t["a"] = (6, torch.ones(2))
        stores = [access for access in accesses(trace) if access.startswith("store")]
        assert stores == ["store a.0", "store a.0", "store a.1"]
        with pytest.raises(KeyError, match="has no 2"):
            t["a"][2] = 1


def test_values_that_are_no_collections_are_live_as_they_are() -> None:
    with declared(1) as (_, t):
        assert isinstance(t, IrGlobalScalar)
        assert live("text", "self.t") == "text"


def test_a_plain_tree_has_plain_containers() -> None:
    with declared({"a": [1, 2]}) as (_, t):
        plain = plain_tree([t, {"x": t["a"]}, 3])
        assert plain == [t.raw, {"x": t.raw["a"]}, 3]
        assert type(plain[0]) is dict
        assert plain_tree(t["a"]) is t.raw["a"]
        same = [1, "x", None]
        assert plain_tree(same) is same


# Stores of trees


def test_a_tree_is_stored_by_key_whatever_its_order() -> None:
    with declared({"a": 1, "b": 2}) as (trace, t):
        assign_tree(trace, t, {"b": 20, "a": 10}, "self.t")
        assert accesses(trace) == ["store a", "store b"]
        assert text_of(trace).index("10 : i64") < text_of(trace).index("20 : i64")


def test_a_tree_takes_a_collection_and_an_empty_one_stores_nothing() -> None:
    with declared({"a": [1, 2], "b": [3, 4], "c": []}) as (trace, t):
        assign_tree(trace, t["a"], t["b"], "self.t['a']")
        assert accesses(trace) == ["load b.0", "store a.0", "load b.1", "store a.1"]
        assign_tree(trace, t["c"], (), "self.t['c']")
        assert len(accesses(trace)) == 4


def test_members_that_change_places_are_loaded_before_the_stores() -> None:
    with declared({"n": [1, 2], "x": [torch.zeros(2), torch.ones(2)]}) as (trace, t):
        assign_tree(trace, t["n"], [t["n"][1], t["n"][0]], "self.t['n']")
        assert accesses(trace) == ["load n.1", "load n.0", "store n.0", "store n.1"]
    with declared({"x": [torch.zeros(2), torch.ones(2)]}) as (trace, t):
        assign_tree(trace, t["x"], [t["x"][1], t["x"][0]], "self.t['x']")
        assert accesses(trace) == ["load x.1", "load x.0", "store x.0", "store x.1"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1, r"self\.t is a dict with the keys \['a', 'b'\], got 1"),
        ({"a": 1}, r"self\.t is a dict .* got a dict with the keys \['a'\]"),
        ({"a": 1, "b": [2], "c": 3}, r"got a dict with the keys \['a', 'b', 'c'\]"),
        ({"a": 1, "b": []}, r"self\.t\['b'\] has 1 entries, got a list of 0 entries"),
        ({"a": 1, "b": (1, 2)}, r"self\.t\['b'\] has 1 entries, got a tuple of 2 entries"),
        ({"a": 1, "b": {0: 1}}, r"self\.t\['b'\] has 1 entries, got a dict with the keys \[0\]"),
    ],
    ids=["number", "fewer", "more", "empty", "longer", "dict"],
)
def test_a_tree_of_another_structure_stores_nothing(value: Any, message: str) -> None:
    with declared({"a": 1, "b": [2]}) as (trace, t):
        with pytest.raises(ProcedureTraceError, match=message):
            assign_tree(trace, t, value, "self.t")
        assert accesses(trace) == []


def test_what_is_no_global_cannot_be_stored_to() -> None:
    with (
        tracing() as trace,
        pytest.raises(ProcedureTraceError, match=r"self\.t cannot be stored to: it is 5"),
    ):
        assign_tree(trace, 5, 1, "self.t")
