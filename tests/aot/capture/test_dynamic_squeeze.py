"""Squeezes of dynamic sizes: refused where the size may be 1 or not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F

from pelton import aot
from pelton.aot.capture.dynamic_squeeze import refuse_aligned_corners, refuse_squeezed_sizes
from pelton.aot.capture.trace import capture


def check(function: Any, shape: tuple[int, ...], dynamic: dict[int, Any]) -> None:
    captured = capture(function, (torch.ones(shape),), {}, {"x": dynamic})
    refuse_squeezed_sizes(captured.program)


@pytest.mark.parametrize(
    "function",
    [lambda x: x.squeeze(), lambda x: x.squeeze(0), lambda x: x.squeeze(-2),
     lambda x: x.squeeze((0, 1))],
)  # fmt: skip
def test_a_dynamic_size_that_may_be_one_is_refused(function: Any) -> None:
    with pytest.raises(aot.DynamicShapeError, match="drops dimension 0 only when its size is 1"):
        check(function, (3, 1), {0: Dim("n", min=1, max=8)})


def test_the_line_of_the_squeeze_is_named() -> None:
    def squeezes(x: torch.Tensor) -> torch.Tensor:
        return x.squeeze(0)

    with pytest.raises(aot.DynamicShapeError) as caught:
        check(squeezes, (3, 2), {0: "n"})
    assert caught.value.location is not None
    assert caught.value.location.line == squeezes.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    "function, shape, dynamic",
    [
        (lambda x: x.squeeze(), (3, 1), {0: Dim("n", min=2, max=8)}),
        (lambda x: x.squeeze(1), (3, 1), {0: Dim("n", min=1, max=8)}),
        (lambda x: x.squeeze(-1), (3, 1), {0: "n"}),
        (lambda x: x.squeeze(()), (3, 1), {0: "n"}),
        (lambda x: x.squeeze(), (3, 1), {}),
        (lambda x: x.sum().squeeze(0), (3, 1), {0: "n"}),
        (lambda x: torch.cat([x, x]).squeeze(0), (3, 1), {0: Dim("n", min=1, max=8)}),
    ],
)
def test_other_squeezes_are_allowed(function: Any, shape: Any, dynamic: Any) -> None:
    check(function, shape, dynamic)


def test_aligned_corners_of_a_size_that_may_be_one_are_refused() -> None:
    def captured(least: int) -> Any:
        def resize(x: torch.Tensor) -> torch.Tensor:
            return F.interpolate(x, scale_factor=1.7, mode="bicubic", align_corners=True)

        shapes = {"x": {2: torch.export.Dim("h", min=least, max=9)}}
        return capture(resize, (torch.ones(1, 1, 4, 4),), {}, shapes).program

    refuse_aligned_corners(captured(2))
    with pytest.raises(aot.DynamicShapeError, match=r"align_corners=True .* minimum of 2"):
        refuse_aligned_corners(captured(1))
