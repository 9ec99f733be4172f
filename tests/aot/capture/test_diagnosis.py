"""Diagnosis of sizes that cannot be dynamic: argument, dimension, reason and line."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim

from pelton import aot
from pelton.aot.capture.diagnosis import is_size_constraint
from pelton.aot.capture.guards import constraints_of
from pelton.aot.capture.trace import capture

X = torch.ones(4, 3)


def failure(function: Any, *args: Any, shapes: Any) -> aot.DynamicShapeError:
    with pytest.raises(aot.DynamicShapeError) as caught:
        capture(function, args, {}, shapes)
    return caught.value


def adds(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    return y + torch.ones(4, 3)


def test_the_report_of_torch_is_recognised() -> None:
    assert is_size_constraint(ValueError("Constraints violated (n)! For more information ..."))
    assert not is_size_constraint(ValueError("n is violated"))


def test_argument_dimension_and_size_are_named() -> None:
    error = failure(adds, X, shapes={"x": {0: "n"}})
    assert "argument x: dimension 0 ('n') cannot be dynamic as asked" in str(error)
    assert "the program fixes" in str(error) and "4" in str(error)
    assert "leaves" not in str(error)


def test_a_dimension_without_a_name_is_named_by_its_place() -> None:
    error = failure(adds, X, shapes={"x": {0: Dim.DYNAMIC}})
    assert "argument x: dimension 0" in str(error) and "('" not in str(error).split("cannot")[0]


def test_the_line_of_the_constraint_is_found() -> None:
    error = failure(adds, X, shapes={"x": {0: "n"}})
    assert error.location is not None
    assert error.location.file == __file__
    assert error.location.line == adds.__code__.co_firstlineno + 2


def test_arguments_within_containers_are_named_by_their_path() -> None:
    def forward(items: Any) -> torch.Tensor:
        return items["a"][0] + torch.ones(4, 3)

    error = failure(forward, {"a": [X]}, shapes={"items": {"a": [{0: "n"}]}})
    assert "argument items['a'][0]: dimension 0" in str(error)


def test_sizes_that_must_be_equal_are_both_named() -> None:
    error = failure(lambda x, y: x + y, X, X, shapes={"x": {0: "n"}, "y": {0: "m"}})
    assert "'n'" in str(error) and "'m'" in str(error)


def test_an_integer_that_is_fixed_is_named() -> None:
    error = failure(
        lambda x, k: x if k == 3 else x + 1, X, aot.DimensionInputInfo((1, 3, 9)), shapes=None
    )
    assert "k" in str(error) and "3" in str(error)


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 3 if x.shape[0] == 1 else x,
        lambda x: x * 3 if x.shape[0] != 1 else x,
        lambda x: x * 3 if x.shape[0] < 2 else x,
        lambda x: x * 3 if x.shape[0] > 1 else x,
    ],
)
@pytest.mark.parametrize("dim", ["n", Dim("n", min=1, max=8)], ids=str)
def test_a_branch_on_a_size_of_one_is_no_silent_choice(dim: Any, size: int, function: Any) -> None:
    x = torch.ones(size, 3)
    try:
        captured = capture(function, (x,), {}, {"x": {0: dim}})
    except aot.DynamicShapeError as error:
        assert "argument x: dimension 0 ('n')" in str(error)
        return
    (symbol,) = captured.program.range_constraints
    found = constraints_of(captured.program, {str(symbol): "n"}, oblivious=captured.oblivious)
    assert all(item.holds({"n": size}) for item in found)
    assert not all(item.holds({"n": 6 if size == 1 else 1}) for item in found)


def test_a_branch_on_a_size_of_one_with_an_example_of_one_is_refused() -> None:
    error = failure(
        lambda x: x * 3 if x.shape[0] == 1 else x, torch.ones(1, 3), shapes={"x": {0: "n"}}
    )
    assert "argument x: dimension 0 ('n')" in str(error)
