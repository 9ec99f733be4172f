"""Ports of raised graphs: which scalars the graph takes as Python integers."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.raising.fx.raised import Kind, Port


@pytest.mark.parametrize(
    ("kind", "dtype", "is_scalar", "expected"),
    [
        ("user", torch.int64, True, True),
        ("user", torch.int64, False, False),
        ("user", torch.float64, True, False),
        ("user", torch.bool, True, False),
        ("state", torch.int64, True, False),
    ],
)
def test_integers_of_the_caller_are_pythons(
    kind: Kind, dtype: torch.dtype, is_scalar: bool, expected: bool
) -> None:
    port = Port("x", kind, "x", dtype, (), is_scalar=is_scalar)
    assert port.is_python_number is expected
