"""What a program's inputs are: element type, sizes and bounds, given instead of example tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .errors import ExportError


@dataclass(frozen=True)
class NamedDimension:
    """A dynamic dimension with a name; dimensions of one name have one size in every call.

    Args:
        name: Its name, such as `batch`.
        min: Smallest size.
        opt: The size to optimise for, and the size of example tensors.
        max: Largest size.

    Raises:
        ExportError: The bounds are no integers with 0 <= min <= opt <= max.

    Example:
        >>> NamedDimension("batch", 1, 4, 16)
        NamedDimension(name='batch', min=1, opt=4, max=16)
    """

    name: str
    min: int
    opt: int
    max: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ExportError(f"the name of a dimension must be text, got {self.name!r}")
        _check_bounds((self.min, self.opt, self.max), f"dimension {self.name!r}")


@dataclass(frozen=True)
class ShapeBounds:
    """The smallest, the optimal and the largest shape of an input."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


InputSize = int | tuple[int, int, int] | NamedDimension
"""One size of an `InputInfo`: fixed, `(min, opt, max)`, or named."""


@dataclass(frozen=True, init=False)
class InputInfo:
    """A tensor that a compiled function takes at run time.

    Args:
        shape: For each dimension its fixed size, `(min, opt, max)`, or a `NamedDimension`.
        dtype: The element type.

    Raises:
        ExportError: A size is of another kind, or its bounds are out of order.

    Example:
        >>> info = InputInfo(((1, 2, 3), 4), torch.float32)
        >>> info.shape_bounds.max
        (3, 4)
        >>> InputInfo((NamedDimension("n", 1, 2, 4), 4), torch.float32).dimension_names
        {0: 'n'}
    """

    shape: tuple[InputSize, ...]
    dtype: torch.dtype

    def __init__(self, shape: Sequence[InputSize], dtype: torch.dtype) -> None:
        if isinstance(shape, (int, str)) or not isinstance(shape, Sequence):
            raise ExportError(f"InputInfo: shape must be a sequence of sizes, got {shape!r}")
        if not isinstance(dtype, torch.dtype):
            raise ExportError(f"InputInfo: dtype must be a torch.dtype, got {dtype!r}")
        sizes = tuple(_check_size(size, axis) for axis, size in enumerate(shape))
        object.__setattr__(self, "shape", sizes)
        object.__setattr__(self, "dtype", dtype)

    @staticmethod
    def like(
        tensor: torch.Tensor,
        dynamic: Mapping[int, tuple[int, int, int] | NamedDimension] | None = None,
    ) -> InputInfo:
        """Return the spec of `tensor`, with the dimensions in `dynamic` made dynamic.

        Args:
            tensor: Gives the shape and the element type.
            dynamic: Bounds by dimension; negative dimensions count from the end.

        Raises:
            ExportError: A dimension that the tensor does not have.

        Example:
            >>> InputInfo.like(torch.zeros(2, 3), dynamic={0: (1, 4, 8)}).shape
            ((1, 4, 8), 3)
        """
        shape: list[InputSize] = list(tensor.shape)
        for axis, bounds in (dynamic or {}).items():
            if not -len(shape) <= axis < len(shape):
                raise ExportError(
                    f"InputInfo.like: there is no dimension {axis} in a tensor of shape "
                    f"{tuple(tensor.shape)}"
                )
            shape[axis] = bounds
        return InputInfo(shape, tensor.dtype)

    @property
    def shape_bounds(self) -> ShapeBounds:
        """The smallest, the optimal and the largest shape."""
        triples = [bounds_of_size(size, "shape") for size in self.shape]
        return ShapeBounds(*(tuple(triple[i] for triple in triples) for i in range(3)))

    @property
    def dimension_names(self) -> dict[int, str]:
        """The names of the named dimensions, by position."""
        named = enumerate(self.shape)
        return {axis: size.name for axis, size in named if isinstance(size, NamedDimension)}


@dataclass(frozen=True)
class DimensionInputInfo:
    """A Python integer that a compiled function takes at run time; it may drive shapes.

    Args:
        value_bounds: `(min, opt, max)`.

    Raises:
        ExportError: The bounds are out of order.

    Example:
        >>> DimensionInputInfo((1, 2, 4)).value_bounds
        (1, 2, 4)
    """

    value_bounds: tuple[int, int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "value_bounds", _check_bounds(self.value_bounds, "value_bounds"))


def _check_size(size: Any, axis: int) -> InputSize:
    if isinstance(size, NamedDimension):
        return size
    if isinstance(size, int) and not isinstance(size, bool):
        if size < 0:
            raise ExportError(f"InputInfo: dimension {axis} is {size}; sizes are not negative")
        return size
    return _check_bounds(size, f"InputInfo: dimension {axis}")


def _check_bounds(bounds: Any, where: str) -> tuple[int, int, int]:
    numbers = tuple(bounds) if isinstance(bounds, (tuple, list)) else ()
    if len(numbers) != 3 or not all(type(number) is int for number in numbers):
        raise ExportError(
            f"{where} must be an integer, (min, opt, max) or a NamedDimension, got {bounds!r}"
        )
    low, optimal, high = numbers
    if not 0 <= low <= optimal <= high:
        raise ExportError(
            f"{where} has bounds (min={low}, opt={optimal}, max={high}); "
            "they must be 0 <= min <= opt <= max"
        )
    return low, optimal, high


def bounds_of_size(size: InputSize, where: str) -> tuple[int, int, int]:
    """Return the smallest, the optimal and the largest value of a size.

    Args:
        size: Fixed, `(min, opt, max)`, or named.
        where: What has it, for the message.

    Raises:
        ExportError: It is of another kind, or its bounds are out of order.

    Example:
        >>> bounds_of_size(3, "x"), bounds_of_size((1, 2, 4), "x")
        ((3, 3, 3), (1, 2, 4))
    """
    if isinstance(size, NamedDimension):
        return size.min, size.opt, size.max
    return _check_bounds((size, size, size) if type(size) is int else size, where)
