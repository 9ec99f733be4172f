"""Contracts of torch's symbolic sizes."""

from __future__ import annotations

import pytest
import sympy
import torch

from pelton.aot.compat.symbolic import ValueRanges, backed_size_oblivious, bound_sympy, check
from tests.contracts import contract

SIZE = sympy.Symbol("s0", integer=True, positive=True)


@contract("value_ranges.ValueRanges", breaks="ranges of sizes in graphs of torch.compile")
def test_range_has_ends() -> None:
    found = ValueRanges(2, 5)
    assert (found.lower, found.upper, found.is_singleton()) == (2, 5, False)
    assert ValueRanges(3, 3).is_singleton()


@contract("value_ranges.bound_sympy", breaks="sizes and constraints that are decided at export")
def test_expression_is_bounded_by_its_symbols() -> None:
    found = bound_sympy(2 * SIZE + 1, {SIZE: ValueRanges(1, 4)})
    assert (int(found.lower), int(found.upper)) == (3, 9)
    relation = bound_sympy(sympy.Ge(SIZE, 1), {SIZE: ValueRanges(1, 4)})
    assert relation.is_singleton() and relation.lower == sympy.true


class AddOne(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.shape[0] == 1 else x


def size_in_trace() -> object:
    shapes = {"x": {0: torch.export.Dim.AUTO}}
    program = torch.export.export(AddOne(), (torch.ones(1, 3),), dynamic_shapes=shapes)
    (placeholder,) = [node for node in program.graph.nodes if node.op == "placeholder"]
    return placeholder.meta["val"].shape[0]


@contract("config.backed_size_oblivious", breaks="dynamic sizes whose example is 0 or 1")
def test_example_of_one_does_not_fix_a_size() -> None:
    with backed_size_oblivious(True):
        assert isinstance(size_in_trace(), torch.SymInt)
    assert size_in_trace() == 1, "the setting ends with the block"


class WithoutFirst(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[1:3]


@contract("symbolic_shapes.make_symbol", breaks="sizes of slices of 0 elements")
def test_a_size_in_a_trace_may_be_zero() -> None:
    with backed_size_oblivious(True):
        program = torch.export.export(
            WithoutFirst(), (torch.ones(4),), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}}
        )
    size = program.graph_module.graph.output_node().args[0][0].meta["val"].shape[0].node.expr
    (symbol,) = size.free_symbols
    assert symbol.is_nonnegative and not symbol.is_positive
    assert [int(size.subs(symbol, n)) for n in range(5)] == [0, 0, 1, 2, 2]


class CheckedSize(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count = x.item()
        check(count >= 2)
        check(count <= 5)
        return torch.ones(count)  # type: ignore[call-overload, no-any-return]


@contract("torch._check", breaks="sizes that depend on data: their ranges, and raised checks")
def test_check_bounds_a_size_that_depends_on_data() -> None:
    assert check is torch._check, "graphs call it, and are compared with it"
    check(True)
    with pytest.raises(RuntimeError, match="too small"):
        check(False, lambda: "too small")
    program = torch.export.export(CheckedSize(), (torch.tensor(3),))
    ((lower, upper),) = {(int(r.lower), int(r.upper)) for r in program.range_constraints.values()}
    assert (lower, upper) == (2, 5)
