"""Explicit padding of pooling and convolution, up to the end of the last window.

Where a dimension of the result is 1, the lowering requires the padded input to be exactly as long
as the window; and it has no windows that start at or after the end (`ceil_mode`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

REASON = "where a dimension of the result is 1, the padded input must be as long as the window"


@dataclass(frozen=True)
class Window:
    """The windows over one dimension.

    Args:
        size: The size of the input, an integer or symbolic.
        kernel: The number of elements of a window.
        stride: The distance between the starts of windows.
        padding: The implicit padding on each side.
        dilation: The distance between the elements of a window.
        ceil_mode: Also count a window that ends in the padding or beyond.
    """

    size: Any
    kernel: int
    stride: int
    padding: int = 0
    dilation: int = 1
    ceil_mode: bool = False

    @property
    def reach(self) -> int:
        """The distance from the first element of a window to behind its last."""
        return self.dilation * (self.kernel - 1) + 1

    @property
    def count(self) -> int:
        """The number of windows; none may start in the padding at the end."""
        span = self.size + 2 * self.padding - self.reach
        count: int = (span + (self.stride - 1 if self.ceil_mode else 0)) // self.stride + 1
        beyond = self.ceil_mode and (count - 1) * self.stride >= self.size + self.padding
        return count - 1 if beyond else count

    @property
    def after(self) -> int:
        """The padding at the end up to the last window; negative where elements are not reached."""
        return (self.count - 1) * self.stride + self.reach - int(self.size) - self.padding

    @property
    def is_inexact(self) -> bool:
        """Whether there is a single window, and the padded input is not as long as it."""
        return isinstance(self.size, int) and self.count == 1 and self.after != self.padding


def each(value: int | Sequence[int], count: int) -> list[int]:
    """Return a value for each of some dimensions, where one may stand for all."""
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


def windows_of(
    sizes: Sequence[Any],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    *,
    ceil_mode: bool = False,
) -> list[Window]:
    """Return the windows over each of some dimensions.

    Args:
        sizes: The sizes of the dimensions.
        kernel: The sizes of the window; one value may stand for all, as in what follows.
        stride: The strides; those of `kernel` if empty.
        padding: The implicit padding on each side.
        dilation: The distances between the elements of a window.
        ceil_mode: As for `Window`.
    """
    count = len(sizes)
    kernels, strides = each(kernel, count), each(stride or kernel, count)
    every = zip(sizes, kernels, strides, each(padding, count), each(dilation, count), strict=True)
    return [Window(*geometry, ceil_mode=ceil_mode) for geometry in every]


def explicit_padding(windows: Sequence[Window], *, to_last: bool = False) -> list[int] | None:
    """Return the padding, as `constant_pad_nd` takes it, with which windows need no implicit one.

    None where the lowering is right without it.

    Args:
        windows: The windows over the last dimensions.
        to_last: Pad all dimensions up to the end of the last window, not only those with one.
    """
    if not any(window.ceil_mode or window.is_inexact for window in windows):
        return None
    ends = []
    for window in reversed(windows):
        exact = to_last or window.is_inexact
        ends += [window.padding, window.after if exact else window.padding]
    return ends
