"""Constraints of traced programs: which guards of torch become ones, and which say nothing."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
import torch
from torch.export import Dim

from pelton import aot
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


BATCH = aot.NamedDimension("batch", 1, 2, 8)


def ranges(function: Any, *shape: int, dtype: torch.dtype = torch.float32) -> str:
    output = aot.export(function, args=[aot.InputInfo((BATCH, *shape), dtype)])
    return str(output.signatures["main"]).partition(" where ")[2]


def to_picture(x: torch.Tensor) -> torch.Tensor:
    tokens = x.transpose(1, 2).reshape(x.shape[0], 3, 4, 4)
    return torch.conv2d(tokens, torch.ones(2, 3, 3, 3))


def assigned(x: torch.Tensor) -> torch.Tensor:
    made = torch.zeros(x.shape[0], 4)
    made[:, 1:3] = x
    return made


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (to_picture, (16, 3)),
        (assigned, (2,)),
        (lambda x: torch.max_pool2d(x, 2, 1, ceil_mode=True), (1, 5, 5)),
        (lambda x: torch.view_as_real(torch.polar(x, x) * torch.complex(x, x).conj()), (4,)),
        (lambda x: torch.quantile(x, 0.3, dim=0) + torch.quantile(x, 0.5, dim=1).sum(), (4,)),
        (lambda x: torch.cdist(x, x).cumprod(1), (3,)),
        (lambda x: torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False), (2, 6)),
    ],
)
def test_a_range_is_that_which_was_asked_for(function: Any, shape: tuple[int, ...]) -> None:
    assert ranges(function, *shape) == "batch=1..8"


@pytest.mark.parametrize(
    ("function", "needs"),
    [
        (lambda x: x.select(0, -2), "aten.select.int needs batch >= 2"),
        (lambda x: x.unfold(0, 2, 1), "aten.unfold.default needs batch >= 2"),
        (lambda x: x.topk(2, 0)[0], "aten.topk.default needs batch >= 2"),
        (lambda x: torch.slice_scatter(x, torch.ones(2, 4), 0, 0, 2), "slice_scatter"),
    ],
)
def test_a_range_that_an_operator_narrows_is_refused(function: Any, needs: str) -> None:
    line = f"test_guards.py:{function.__code__.co_firstlineno}"
    with pytest.raises(
        aot.DynamicShapeError, match=f"'batch' was asked as 1..8.*{needs}"
    ) as raised:
        ranges(function, 4)
    assert line in str(raised.value)


def test_a_size_that_an_operator_fixes_is_refused_with_its_line() -> None:
    def fixed(x: torch.Tensor) -> torch.Tensor:
        return torch.slice_scatter(torch.ones(2, 4), x, 0)

    line = f"test_guards.py:{fixed.__code__.co_firstlineno + 1}"
    with pytest.raises(
        aot.DynamicShapeError, match=r"slice_scatter\.default fixes it to 2"
    ) as raised:
        ranges(fixed, 4)
    assert line in str(raised.value)


def test_a_program_of_a_builder_keeps_its_range_or_is_refused() -> None:
    class Model(torch.nn.Module):
        pass

    def signature(function: Any) -> str:
        builder = aot.FxProgramsBuilder(Model())
        info = aot.InputInfo((BATCH, 2), torch.float32)
        builder.export_program(lambda _, x: function(x), args=[info], strict=False, name="f")
        return str(aot.export(builder).signatures["f"])

    assert signature(assigned).endswith("where batch=1..8")
    with pytest.raises(aot.DynamicShapeError, match=r"the program needs batch > 1.*test_guards"):
        signature(lambda x: x[1])
