"""Static and dynamic sizes."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
import torch
from torch.export import Dim

from pelton.aot.spec.sizes import is_static


@pytest.mark.parametrize(
    "size, static",
    [(0, True), (1, True), (-1, True), (2**62, True), (None, False), ("n", False), (1.0, False),
     (sympy.Symbol("s0"), False), (["*", 2, "n"], False)],
)  # fmt: skip
def test_integers_are_static(size: Any, static: bool) -> None:
    assert is_static(size) is static


def test_symbolic_integers_are_dynamic() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    program = torch.export.export(Net(), (torch.ones(2, 3),), dynamic_shapes=({0: Dim("n")},))
    value = next(iter(program.graph.nodes)).meta["val"]
    assert [is_static(size) for size in value.shape] == [False, True]
