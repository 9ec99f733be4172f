"""Globals that declarations add to a module: symbols, initial values, shared tensors, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.compat.pytrees import TreeSpec, tree_structure
from pelton.aot.procedural.globals.declaration import GlobalsDef, TrackedGlobal
from pelton.aot.procedural.globals.live_globals import IrGlobalScalar, IrGlobalTensor
from tests.aot.procedural.traces import new_builder, tracing


def lines(builder: aot.ModuleBuilder) -> list[str]:
    return [str(op) for op in builder.body.operations]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (3, "util.global private @_g.global = 3 : i64"),
        (True, "util.global private @_g.global = true"),
        (0.5, "util.global private @_g.global = 5.000000e-01 : f32"),
        (aot.AbstractI32, "util.global private @_g.global = 0 : i32"),
        (aot.AbstractBool, "util.global private @_g.global = false"),
        (
            aot.AbstractTensor(2),
            "util.global private @_g.global = dense<0.000000e+00> : tensor<2xf32>",
        ),
    ],
    ids=str,
)
def test_a_global_starts_with_its_value_or_zero(value: Any, line: str) -> None:
    builder = new_builder()
    tracked = aot.export_global(value).track(builder, "g")
    assert lines(builder) == [line]
    assert (tracked.export_name, tracked.symbol) == ("g", "_g.global")
    assert str(tracked.type) == line.rpartition(" : ")[2].replace(line, "i1")


def test_bools_are_held_as_bytes() -> None:
    builder = new_builder()
    tracked = aot.export_global(torch.tensor([True])).track(builder, "g")
    assert (str(tracked.type), tracked.dtype) == ("tensor<1xi8>", torch.bool)
    tracked = aot.export_global(aot.AbstractTensor(3, dtype=torch.bool)).track(builder, "h")
    assert (str(tracked.type), tracked.dtype) == ("tensor<3xi8>", torch.bool)


def test_globals_are_returned_in_the_declared_structure() -> None:
    tree = {"b": [torch.zeros(2), 1], "a": (2.0,)}
    tracked = aot.export_global_tree(tree).track(new_builder(), "t")
    assert {key: type(child) for key, child in tracked.items()} == {"b": list, "a": tuple}
    assert [entry.symbol for entry in (*tracked["b"], *tracked["a"])] == [
        "_t.b.0",
        "_t.b.1",
        "_t.a.0",
    ]
    assert aot.export_global_tree({}).track(new_builder(), "t") == {}


def test_one_tensor_in_a_tree_is_one_global_but_equal_numbers_are_not() -> None:
    tensor = torch.ones(2)
    builder = new_builder()
    first, again, one, other = aot.export_global_tree([tensor, tensor, 5, 5], mutable=True).track(
        builder, "t"
    )
    assert again is first
    assert one.symbol != other.symbol
    assert len(lines(builder)) == 3


def test_a_tensor_of_two_declarations_is_shared_while_it_cannot_change() -> None:
    tensor = torch.ones(2)
    builder = new_builder()
    first = aot.export_global(tensor).track(builder, "a")
    second = aot.export_global(tensor).track(builder, "b")
    third = aot.export_global(tensor, mutable=True).track(builder, "c")
    assert (first.symbol, second.symbol, third.symbol) == ("_a.global", "_a.global", "_c.global")
    assert second.export_name == "b"
    assert len(lines(builder)) == 2


def test_the_mutable_tensors_of_a_module_stay_shared() -> None:
    norm = torch.nn.BatchNorm1d(2)
    builder = new_builder()
    first = aot.export_buffers(norm, mutable=True).track(builder, "a")["running_mean"]
    second = aot.export_buffers(norm, mutable=True).track(builder, "b")["running_mean"]
    assert first.symbol == second.symbol == "_a.running_mean"


def test_the_materialized_global_is_of_the_declared_kind() -> None:
    with tracing() as trace:
        declared = aot.export_global_tree([torch.zeros(2, dtype=torch.int8), 1.5])
        tensor, number = (one.materialize() for one in declared.track(trace.module_builder, "t"))
    assert isinstance(tensor, IrGlobalTensor)
    assert (tensor.dtype, tensor.symbol_name) == (torch.int8, "_t.0")
    assert isinstance(number, IrGlobalScalar)
    assert (number.kind, number.symbol_name) == ("f32", "_t.1")
    assert tensor.info is number.info is declared


def test_two_leaves_of_one_name_are_refused() -> None:
    tree = {"a": [1], "a.0": 2}
    with pytest.raises(aot.ExportError, match=r"t exports the name 'a\.0' twice"):
        aot.export_global_tree(tree).track(new_builder(), "t")


@pytest.mark.parametrize(
    "value", ["text", None, 1j, torch.nn.ReLU()], ids=lambda v: type(v).__name__
)
def test_what_cannot_be_a_global_is_named_by_its_class(value: Any) -> None:
    message = rf"self\.g: a {type(value).__name__} cannot be a global; export tensors, numbers"
    with pytest.raises(aot.ExportError, match=message):
        aot.export_global(value).track(new_builder(), "g")


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_a_number_that_64_bits_do_not_hold_is_refused(value: int) -> None:
    with pytest.raises(aot.ExportError, match=rf"self\.g: {value} does not fit"):
        aot.export_global(value).track(new_builder(), "g")


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_the_least_and_the_greatest_number_are_globals(value: int) -> None:
    builder = new_builder()
    aot.export_global(value).track(builder, "g")
    assert lines(builder) == [f"util.global private @_g.global = {value} : i64"]


@pytest.mark.parametrize("value", [1, aot.AbstractF32], ids=str)
def test_a_number_cannot_be_external(value: Any) -> None:
    with pytest.raises(aot.ExportError, match="a number cannot come from an archive; use a tensor"):
        aot.export_global(value, external=True).track(new_builder(), "g")


def test_an_abstract_tensor_needs_static_sizes() -> None:
    with pytest.raises(aot.ExportError, match="g"):
        aot.export_global(aot.AbstractTensor(None, 2)).track(new_builder(), "g")


def test_a_declaration_that_lacks_a_method_is_named() -> None:
    bare = GlobalsDef(aot.GlobalAttributes())
    with pytest.raises(NotImplementedError, match=r"GlobalsDef does not define items\(\)"):
        bare.items()
    with pytest.raises(NotImplementedError, match=r"GlobalsDef does not define schema\(\)"):
        bare.schema()


def test_tensors_made_while_iterating_are_not_taken_for_one() -> None:
    class Fresh(GlobalsDef):
        def items(self) -> Iterator[tuple[str, Any]]:
            for number in range(4):
                yield str(number), torch.full((2,), float(number))

        def schema(self) -> TreeSpec:
            return tree_structure([0] * 4)

    tracked: list[TrackedGlobal] = Fresh(aot.GlobalAttributes(mutable=True)).track(
        new_builder(), "t"
    )
    assert [one.symbol for one in tracked] == ["_t.0", "_t.1", "_t.2", "_t.3"]
