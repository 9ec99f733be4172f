"""Queries of operations: names, inputs, loops, and the combiners of reductions."""

from __future__ import annotations

import pytest

from pelton.codegen.linalg import (
    accumulated,
    body_of,
    inputs_of,
    is_reduction,
    iterator_kinds,
    operations_in,
)
from tests.codegen.ir import parsed

ROW_SUMS = """
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2xf32>, %z: tensor<2xf32>) -> tensor<2xf32> {{
  %0:2 = linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                     affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  }} ins(%x : tensor<2x3xf32>) outs(%y, %z : tensor<2xf32>, tensor<2xf32>) {{
  ^bb0(%in: f32, %sum: f32, %other: f32):
    %1 = {first} : f32
    %2 = {second} : f32
    linalg.yield %1, %2 : f32, f32
  }} -> (tensor<2xf32>, tensor<2xf32>)
  return %0#0 : tensor<2xf32>
}}
"""
SUM, MAXIMUM = "arith.addf %in, %sum", "arith.maximumf %in, %other"


def test_operations_are_found_by_name_inside_out() -> None:
    with parsed(ROW_SUMS.format(first=SUM, second=MAXIMUM)) as module_op:
        names = [op.name for op in operations_in(module_op)]
        assert names[:3] == ["arith.addf", "arith.maximumf", "linalg.yield"]
        assert names[-2:] == ["func.func", "builtin.module"]
        found = operations_in(module_op, "linalg.generic", "arith.addf")
        assert [op.name for op in found] == ["arith.addf", "linalg.generic"]
        assert operations_in(module_op, "linalg.matmul") == []


def test_operations_that_were_found_can_be_erased() -> None:
    text = "func.func @main() { %0 = arith.constant 1 : i32 %1 = arith.constant 2 : i32 return }"
    with parsed(text) as module_op:
        for op in operations_in(module_op, "arith.constant"):
            op.erase()
        assert module_op.verify() and "arith" not in str(module_op)


def test_parts_of_a_structured_operation() -> None:
    with parsed(ROW_SUMS.format(first=SUM, second=MAXIMUM)) as module_op:
        (generic,) = operations_in(module_op, "linalg.generic")
        (function,) = operations_in(module_op, "func.func")
        assert inputs_of(generic) == [function.regions[0].blocks[0].arguments[0]]
        assert len(body_of(generic).arguments) == 3
        assert iterator_kinds(generic) == ["parallel", "reduction"]
        assert iterator_kinds(function) == []
        assert is_reduction(generic) and not is_reduction(function)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (SUM, MAXIMUM, [("arith.addf", 0)]),
        ("arith.addf %sum, %in", "arith.mulf %in, %other", [("arith.addf", 1), ("arith.mulf", 0)]),
        ("arith.mulf %in, %in", "arith.subf %other, %in", [("arith.subf", 1)]),
        (MAXIMUM.replace("other", "sum"), "arith.addf %in, %sum", []),
    ],
    ids=["sum and maximum", "sum and product", "without its accumulator", "of the other one"],
)
def test_combiners_for_which_the_trip_count_matters(
    first: str, second: str, expected: list[tuple[str, int]]
) -> None:
    with parsed(ROW_SUMS.format(first=first, second=second)) as module_op:
        (generic,) = operations_in(module_op, "linalg.generic")
        assert [(op.name, operand) for op, operand in accumulated(generic)] == expected


def test_result_that_is_an_argument_of_the_body_has_no_combiner() -> None:
    text = ROW_SUMS.format(first=SUM, second=MAXIMUM).replace("yield %1, %2", "yield %in, %sum")
    with parsed(text) as module_op:
        (generic,) = operations_in(module_op, "linalg.generic")
        assert list(accumulated(generic)) == []
