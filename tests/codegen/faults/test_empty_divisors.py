"""Divisors of sizes: a division by 0 on the host is one by 1."""

from __future__ import annotations

import pytest

from pelton.codegen.faults.empty_divisors import guard_divisions
from tests.codegen.ir import reprinted, rewritten

DIVISION = """
util.func public @main(%n: index, %m: index) -> index {{
  %c4 = arith.constant 4 : index
  %0 = arith.{division} %n, {divisor} : index
  util.return %0 : index
}}
"""


@pytest.mark.parametrize("division", ["divsi", "divui", "ceildivui", "remsi"])
def test_a_size_that_is_divided_by_is_at_least_one(division: str) -> None:
    text = rewritten(DIVISION.format(division=division, divisor="%m"), guard_divisions)
    assert "arith.maxui %arg1, %c1 : index" in text


def test_a_division_by_a_constant_is_left_alone() -> None:
    text = DIVISION.format(division="divsi", divisor="%c4")
    assert rewritten(text, guard_divisions) == reprinted(text)
