import math
from typing import Any

import pytest
import torch

from pelton.aot.verify.difference import difference
from pelton.aot.verify.options import Numerics


def problem(wanted: Any, got: Any, **tolerances: float) -> str:
    return difference(wanted, got, Numerics(tolerances=tolerances)).problem


ONES = torch.ones(4)


@pytest.mark.parametrize(
    ("wanted", "got", "expected"),
    [
        (ONES, ONES + 1e-5, ""),
        (ONES, ONES + 0.01, "off by more than 0.001 of its size"),
        (ONES.half(), ONES.half() + 0.01, ""),
        (ONES, ONES.double(), "is float64[4], wanted float32[4]"),
        (ONES, torch.ones(3), "is float32[3], wanted float32[4]"),
        (ONES, 1.0, "is 1.0, not a tensor"),
        (torch.arange(4), torch.tensor([0, 1, 2, 4]), "1 of 4 elements are not equal"),
        (torch.tensor([True]), torch.tensor([False]), "1 of 1 elements are not equal"),
        (torch.tensor([1 + 1j]), torch.tensor([1 + 1.1j]), "off by more than 0.001 of its size"),
        (torch.zeros(0), torch.zeros(0), ""),
        (3, 3, ""),
        (3, 4, "is 4, wanted 3"),
        (3, True, "is True, wanted 3"),
        (0.5, 0.5 + 1e-7, ""),
        (0.5, 0.6, "off by more than 0.001 of its size"),
    ],
)
def test_results_are_compared_by_their_kind(wanted: Any, got: Any, expected: str) -> None:
    assert problem(wanted, got) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_wrong_where_a_finite_one_is_wanted(value: float) -> None:
    got = torch.tensor([1.0, value])
    assert problem(torch.ones(2), got) == (
        "1 of 2 elements are NaN or infinite, wanted finite ones"
    )
    assert problem(got, got) == ""
    assert problem(got, torch.ones(2)).startswith("1 of 2 elements are not as infinite")


def test_infinities_of_the_other_sign_differ() -> None:
    assert problem(torch.tensor([math.inf]), torch.tensor([-math.inf]))


def test_rounding_of_a_zero_is_no_difference() -> None:
    assert problem(torch.zeros(3), torch.full((3,), 1e-7)) == ""
    assert problem(torch.zeros(3), torch.full((3,), 1e-5)) != ""


def test_small_values_are_compared_as_strictly_as_large_ones() -> None:
    small = torch.full((8,), 1e-5)
    assert problem(small, small * 1.2)
    assert problem(small, small * 1.0001) == ""


def test_tolerances_can_be_set_by_element_type() -> None:
    assert problem(ONES, ONES + 0.01, float32=0.1) == ""
    assert problem(ONES, ONES + 1e-6, float32=0) == "off by more than 0 of its size"


def test_the_largest_differences_are_reported() -> None:
    found = difference(torch.tensor([1.0, -100.0]), torch.tensor([1.0, -101.0]), Numerics())
    assert found.absolute == 1.0
    assert found.relative == pytest.approx(1 / (100 + math.sqrt(10001 / 2)))
