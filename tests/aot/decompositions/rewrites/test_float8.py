"""Conversions to float8_e4m3fn beyond its range, beside eager torch."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tests.aot.decompositions.rewritten import rewritten, targets

NUMBERS = [0.0, -0.0, 100.0, 447.0, 464.0, 465.0, 900.0, -900.0, 1e6, torch.inf, -torch.inf]


def test_numbers_beyond_the_range_saturate(check: Callable[..., None]) -> None:
    def converted(x: torch.Tensor, n: torch.Tensor) -> list[torch.Tensor]:
        sources = [x, x.half(), x.bfloat16(), x.double(), n]
        return [s.to(torch.float8_e4m3fn).to(torch.float32) for s in sources] + [
            x.to(torch.float8_e5m2).to(torch.float32)
        ]

    x = torch.tensor([*NUMBERS, torch.nan])
    check({"converted": converted}, [x, torch.tensor([0, 300, 465, -70000])])


def test_types_that_do_not_reach_beyond_are_left_alone() -> None:
    module = rewritten(lambda x: x.to(torch.float8_e4m3fn), torch.ones(3, dtype=torch.int8))
    assert torch.ops.aten.clamp.default not in targets(module)
