"""Size assumptions: sizes that IREE takes for at least 1 may be 0, others are left as they are."""

from __future__ import annotations

import pytest

from pelton.codegen.faults.size_assumptions import assume_no_elements
from tests.codegen.ir import rewritten

ASSUME = """
util.func public @main(%n: index) -> index {{
  %0 = util.assume.int %n<{bounds}> : index
  util.return %0 : index
}}
"""


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        ("umin = 1, umax = 12", "umin = 0, umax = 12"),
        ("umin = 10, umax = 12", "umin = 10, umax = 12"),
        ("umin = 1, umax = 12, udiv = 4", "umin = 0, umax = 12, udiv = 4"),
        ("udiv = 4", "udiv = 4"),
    ],
)
def test_a_size_of_at_least_one_may_be_zero(bounds: str, wanted: str) -> None:
    assert f"<{wanted}>" in rewritten(ASSUME.format(bounds=bounds), assume_no_elements)
