"""Ranges of integer inputs: as asked, of the table that they index, or what the program accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pelton.aot.spec.errors import ExportError
from pelton.aot.verify.integer_ranges import CANDIDATES, check_paths, integer_ranges
from pelton.aot.verify.options import Numerics
from pelton.aot.verify.values import Bounds
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import Leaf, Parameter, ScalarSpec, Signature, TensorSpec

TABLE = torch.arange(74.0).reshape(37, 2)


def signature(**inputs: Leaf) -> Signature:
    parameters = [Parameter(n, "POSITIONAL_OR_KEYWORD", i) for i, n in enumerate(inputs)]
    result = TensorSpec(DTYPES["float32"], (1,))
    return Signature("main", tuple(parameters), tuple(inputs.values()), 0, (result,))


def integers(dtype: str = "int64", *shape: Any) -> TensorSpec:
    return TensorSpec(DTYPES[dtype], shape or (5,))


def ranges_of(
    run: Callable[..., Any], options: Numerics | None = None, **inputs: Leaf
) -> tuple[dict[int, Bounds], list[str]]:
    return integer_ranges(
        signature(**inputs), lambda leaves: [run(*leaves)], {"n": 3}, options or Numerics()
    )


@pytest.mark.parametrize(
    "run",
    [
        lambda i: torch.nn.functional.embedding(i, TABLE),
        lambda i: TABLE[i],
        lambda i: TABLE.T[:, i],
        lambda i: TABLE.index_select(0, i),
        lambda i: TABLE.T.index_select(-1, i),
        lambda i: TABLE.gather(0, i[:, None]),
        lambda i: TABLE[i.reshape(-1, 1)],
        lambda i: TABLE[i.clone()],
        lambda i: TABLE.clone().index_add_(0, i, torch.ones(5, 2)),
        lambda i: torch.take(TABLE[:, 0], i),
    ],
    ids=[
        "embedding", "index", "columns", "index_select", "negative", "gather", "view", "copy",
        "index_add", "take",
    ],
)  # fmt: skip
def test_an_input_that_indexes_a_table_ranges_over_all_of_it(run: Callable[..., Any]) -> None:
    ranges, notes = ranges_of(run, i=integers())
    assert ranges == {0: (0, 36)}
    assert notes == ["main(): i in (0, 36) (all of the table that it indexes)"]


def test_an_input_of_two_tables_ranges_over_the_smaller() -> None:
    ranges, _ = ranges_of(lambda i: TABLE[i] + TABLE[:9][i] + TABLE[i], i=integers())
    assert ranges == {0: (0, 8)}


def test_inputs_of_several_tables_are_not_mixed_up() -> None:
    ranges, _ = ranges_of(
        lambda x, i, j: TABLE[i] + TABLE[:4][j] + x,
        x=TensorSpec(DTYPES["float32"], (5, 2)),
        i=integers("int32"),
        j=integers(),
    )
    assert ranges == {1: (0, 36), 2: (0, 3)}


def test_indexing_that_was_seen_counts_though_the_run_failed() -> None:
    def run(i: torch.Tensor) -> torch.Tensor:
        found = TABLE[i]
        if i.sum() == 0:
            raise ValueError("zeros")
        return found

    assert ranges_of(run, i=integers())[0] == {0: (0, 36)}


def test_what_the_user_says_comes_first_and_other_names_are_left() -> None:
    options = Numerics(integers={"i": (3, 5), "elsewhere": (0, 1)})
    ranges, notes = ranges_of(lambda i: TABLE[i], options, i=integers())
    assert ranges == {0: (3, 5)}
    assert notes == ["main(): i in (3, 5) (as asked)"]


def test_nothing_is_run_where_all_ranges_are_given() -> None:
    def run(i: torch.Tensor) -> torch.Tensor:
        raise AssertionError("run")

    assert ranges_of(run, Numerics(integers={"i": (3, 5)}), i=integers())[0] == {0: (3, 5)}


@pytest.mark.parametrize("bounds", CANDIDATES)
def test_else_the_widest_range_that_the_program_accepts_is_taken(bounds: Bounds) -> None:
    def run(i: torch.Tensor) -> torch.Tensor:
        if i.min() < bounds[0] or i.max() > bounds[1]:
            raise IndexError
        return i

    ranges, notes = ranges_of(run, i=integers("int64", 200))
    assert ranges == {0: bounds}
    assert notes == [f"main(): i in {bounds} (PyTorch accepts it)"]


def test_where_none_is_accepted_zero_is_tried() -> None:
    def run(i: torch.Tensor) -> torch.Tensor:
        raise IndexError

    assert ranges_of(run, i=integers())[0] == {0: (0, 0)}


@pytest.mark.parametrize(
    ("dtype", "bounds"), [("uint8", (0, 100)), ("int8", (-100, 100)), ("uint16", (0, 100))]
)
def test_a_range_is_cut_to_the_element_type(dtype: str, bounds: Bounds) -> None:
    assert ranges_of(lambda i: i, i=integers(dtype))[0] == {0: bounds}


def test_numbers_that_are_sizes_and_other_types_have_no_range() -> None:
    ranges, notes = ranges_of(
        lambda *leaves: leaves[0],
        x=TensorSpec(DTYPES["float32"], ("n",)),
        size=ScalarSpec("int", "n"),
        factor=ScalarSpec("float"),
        flag=TensorSpec(DTYPES["bool"], (2,)),
    )
    assert (ranges, notes) == ({}, [])


def test_a_python_number_has_a_range() -> None:
    def run(n: int) -> torch.Tensor:
        return TABLE[n] if 0 <= n <= 9 else TABLE[99]

    assert ranges_of(run, n=ScalarSpec("int"))[0] == {0: (0, 9)}


def test_a_range_for_no_integer_is_refused_with_those_that_there_are() -> None:
    known = {"main": signature(x=TensorSpec(DTYPES["float32"], (1,)), i=integers())}
    check_paths(known, Numerics(integers={"i": (0, 1)}))
    with pytest.raises(ExportError, match=r"'x' is no integer input; there are: i$"):
        check_paths(known, Numerics(integers={"x": (0, 1)}))
    with pytest.raises(ExportError, match="there are: none"):
        check_paths({}, Numerics(integers={"x": (0, 1)}))
