"""Specs of inputs: sizes, bounds and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.spec.inputs import DimensionInputInfo, InputInfo, NamedDimension, bounds_of_size

N = NamedDimension("n", 1, 2, 4)


def test_bounds_of_a_shape() -> None:
    bounds = InputInfo((3, (0, 1, 2), N), torch.int8).shape_bounds
    assert (bounds.min, bounds.opt, bounds.max) == ((3, 0, 1), (3, 1, 2), (3, 2, 4))
    scalar = InputInfo((), torch.int8)
    assert scalar.shape_bounds.min == () and scalar.dimension_names == {}


def test_lists_are_bounds_as_tuples_are() -> None:
    assert InputInfo([[1, 2, 3], 4], torch.int8) == InputInfo(((1, 2, 3), 4), torch.int8)


def test_specs_like_a_tensor() -> None:
    tensor = torch.zeros(2, 3, dtype=torch.float16)
    assert InputInfo.like(tensor) == InputInfo((2, 3), torch.float16)
    assert InputInfo.like(tensor, {-1: N, 0: (1, 2, 9)}).shape == ((1, 2, 9), N)
    for axis in (2, -3):
        with pytest.raises(aot.ExportError, match=f"no dimension {axis} in a tensor of shape"):
            InputInfo.like(tensor, {axis: N})


@pytest.mark.parametrize(
    "shape, message",
    [
        (3, "shape must be a sequence of sizes, got 3"),
        ("23", "shape must be a sequence of sizes, got '23'"),
        (None, "shape must be a sequence"),
        ((2, -1), "dimension 1 is -1; sizes are not negative"),
        (("n",), r"dimension 0 must be an integer, \(min, opt, max\) or a NamedDimension, got 'n'"),
        ((True,), "dimension 0 must be an integer"),
        ((2.0,), "dimension 0 must be an integer"),
        (((1, 2),), "dimension 0 must be an integer"),
        (((1, 2.0, 3),), "dimension 0 must be an integer"),
        (((1, True, 3),), "dimension 0 must be an integer"),
        (((2, 1, 3),), r"has bounds \(min=2, opt=1, max=3\); they must be 0 <= min <= opt <= max"),
        (((1, 4, 3),), "they must be 0 <= min"),
        (((-1, 0, 3),), "they must be 0 <= min"),
    ],
)
def test_wrong_shapes_are_refused(shape: Any, message: str) -> None:
    with pytest.raises(aot.ExportError, match=message):
        InputInfo(shape, torch.float32)


@pytest.mark.parametrize("dtype", ["float32", None, float])
def test_wrong_element_types_are_refused(dtype: Any) -> None:
    with pytest.raises(aot.ExportError, match=r"dtype must be a torch\.dtype, got"):
        InputInfo((2,), dtype)


@pytest.mark.parametrize("name", ["", 1, None])
def test_a_dimension_needs_a_name(name: Any) -> None:
    with pytest.raises(aot.ExportError, match="the name of a dimension must be text"):
        NamedDimension(name, 1, 2, 3)


def test_bounds_of_dimensions_and_integers_are_checked() -> None:
    with pytest.raises(aot.ExportError, match=r"dimension 'n' has bounds \(min=3, opt=2, max=1\)"):
        NamedDimension("n", 3, 2, 1)
    with pytest.raises(aot.ExportError, match="value_bounds must be an integer"):
        DimensionInputInfo((1, 2))  # type: ignore[arg-type]
    assert DimensionInputInfo([0, 0, 0]).value_bounds == (0, 0, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "size, bounds", [(0, (0, 0, 0)), ((1, 1, 1), (1, 1, 1)), (N, (1, 2, 4)), ([1, 2, 3], (1, 2, 3))]
)
def test_bounds_of_sizes(size: Any, bounds: tuple[int, int, int]) -> None:
    assert bounds_of_size(size, "x") == bounds


def test_specs_are_equal_and_hashable_by_value() -> None:
    assert len({InputInfo((2, N), torch.int8), InputInfo((2, N), torch.int8)}) == 1
    assert InputInfo((2,), torch.int8) != InputInfo((2,), torch.uint8)
