"""Constraints of traced programs: which guards of torch become ones, and which say nothing."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
import torch
from torch.export import Dim

from pelton.aot.capture.diagnosis import fails_at_one
from pelton.aot.capture.guards import constraints_of, shape_env_of
from pelton.aot.capture.trace import capture
from pelton.runtime.call.sizes import Constraint

AUTO = {"x": {0: Dim.AUTO}}


def constraints(function: Any, size: int = 6, shapes: Any = AUTO) -> tuple[Constraint, ...]:
    captured = capture(function, (torch.ones(size, 3),), {}, shapes)
    (symbol,) = captured.program.range_constraints
    names = {str(symbol): "n"}
    return constraints_of(captured.program, names, oblivious=captured.oblivious)


def holds(found: tuple[Constraint, ...], size: int) -> bool:
    return all(item.holds({"n": size}) for item in found)


def test_a_program_without_comparisons_has_no_constraints() -> None:
    assert constraints(lambda x: x * 2) == ()


def test_a_multiple_is_a_constraint() -> None:
    found = constraints(lambda x: x.reshape(-1, 2, 3))
    assert found and holds(found, 8) and not holds(found, 7)


def test_a_branch_on_a_size_is_a_constraint() -> None:
    found = constraints(lambda x: x + 1 if x.shape[0] % 3 == 0 else x)
    assert holds(found, 9) and not holds(found, 8)


def test_a_branch_that_was_not_taken_is_a_constraint() -> None:
    found = constraints(lambda x: x + 1 if x.shape[0] % 4 == 0 else x)
    assert holds(found, 9) and not holds(found, 8)


def test_each_constraint_is_stated_once() -> None:
    found = constraints(lambda x: x.reshape(-1, 2, 3) + x.reshape(-1, 2, 3))
    assert len(found) == len(set(map(str, found)))


def test_what_the_range_implies_is_not_stated() -> None:
    shapes = {"x": {0: Dim("n", min=4, max=8)}}
    assert constraints(lambda x: x + 1 if x.shape[0] > 3 else x, shapes=shapes) == ()


def test_unnamed_symbols_give_no_constraint() -> None:
    captured = capture(lambda x: x.reshape(-1, 2, 3), (torch.ones(6, 3),), {}, AUTO)
    assert constraints_of(captured.program, {}, oblivious=captured.oblivious) == ()


@pytest.mark.parametrize("size, branch", [(1, True), (5, False)])
def test_a_branch_of_the_user_on_a_size_of_one_is_kept(size: int, branch: bool) -> None:
    found = constraints(lambda x: x * 3 if x.shape[0] == 1 else x, size)
    assert holds(found, 1) is branch and holds(found, 4) is not branch


def test_a_program_without_sizes_has_no_shape_environment() -> None:
    program = torch.export.export(torch.nn.Identity(), (3,))
    assert shape_env_of(program) is None
    captured = capture(lambda x: x + 1, (torch.ones(2, 3),), {}, AUTO)
    assert shape_env_of(captured.program) is not None


N = sympy.Symbol("n", integer=True, positive=True)


@pytest.mark.parametrize(
    "relation, fails",
    [
        (sympy.Ne(N, 1), True), (sympy.Ne(N, 2), False), (sympy.Eq(N, 1), False),
        (sympy.Eq(N, 2), True), (N > 1, True), (N >= 1, False), (sympy.Ne(N * 3, 3), True),
        (sympy.Ne(sympy.Mod(6, N - 1), 0), False),
    ],
    ids=str,
)  # fmt: skip
def test_relations_that_fail_at_one(relation: Any, fails: bool) -> None:
    assert fails_at_one(relation, N) is fails
