"""Pooling and convolution of inputs without a batch, and pooling to a single row or column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ...compat.pytrees import tree_map
from ...spec.sizes import is_static
from ..registry import Decomposition, Family
from .padding import padded_or_cut

aten = torch.ops.aten

FAMILY = Family("pooling")

_WINDOWED = (
    (aten.conv1d.default, 1),
    (aten.conv1d.padding, 1),
    (aten.conv2d.default, 2),
    (aten.conv2d.padding, 2),
    (aten.conv3d.default, 3),
    (aten.conv3d.padding, 3),
    (aten.conv_transpose1d.default, 1),
    (aten.conv_transpose2d.input, 2),
    (aten.conv_transpose3d.input, 3),
    (aten.adaptive_avg_pool1d.default, 1),
    (aten.adaptive_avg_pool2d.default, 2),
    (aten.adaptive_avg_pool3d.default, 3),
    (aten.adaptive_max_pool1d.default, 1),
    (aten.adaptive_max_pool2d.default, 2),
    (aten.adaptive_max_pool3d.default, 3),
    (aten.avg_pool1d.default, 1),
    (aten.avg_pool2d.default, 2),
    (aten.avg_pool3d.default, 3),
    (aten.max_pool1d.default, 1),
    (aten.max_pool2d.default, 2),
    (aten.max_pool3d.default, 3),
    (aten.max_pool1d_with_indices.default, 1),
    (aten.max_pool2d_with_indices.default, 2),
    (aten.max_pool3d_with_indices.default, 3),
)
"""Operators over windows, and over how many dimensions."""


def _batched(operator: OpOverload, dimensions: int) -> Decomposition:
    def decomposition(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.dim() != dimensions + 1:
            return NotImplemented
        return tree_map(lambda result: result.squeeze(0), operator(x[None], *args, **kwargs))

    return decomposition


for _operator, _dimensions in _WINDOWED:
    FAMILY.enter(_operator, _batched(_operator, _dimensions), reason="the lowering wants a batch")


def each(value: int | Sequence[int], count: int) -> list[int]:
    """Return a value for each of some dimensions, where one may stand for all."""
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


def _cut_to_reach(operator: OpOverload, dimensions: int) -> Decomposition:
    def decomposition(
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if any(each(padding, dimensions)) or any(args) or any(kwargs.values()):
            return NotImplemented
        windows = each(kernel, dimensions)
        cut = x
        for axis, (window, step) in enumerate(
            zip(windows, each(stride or kernel, dimensions), strict=True), x.dim() - dimensions
        ):
            size = x.shape[axis]
            if is_static(size) and window < size < window + step:
                cut = cut.narrow(axis, 0, window)
        return NotImplemented if cut is x else operator(cut, kernel, stride)

    return decomposition


for _operator, _dimensions in (
    (aten.avg_pool1d.default, 1),
    (aten.avg_pool2d.default, 2),
    (aten.avg_pool3d.default, 3),
):
    FAMILY.enter(
        _operator,
        _cut_to_reach(_operator, _dimensions),
        reason="where a dimension of the result is 1, the input must be as long as the window",
    )


def _windows(size: int, window: int, step: int, padding: int, ceil_mode: bool) -> int:
    """Return how many windows torch takes; none may start in the padding at the end."""
    span = size + 2 * padding - window + (step - 1 if ceil_mode else 0)
    count = span // step + 1
    return count - 1 if ceil_mode and (count - 1) * step >= size + padding else count


def _with_divisor(operator: OpOverload, dimensions: int) -> Decomposition:
    def decomposition(
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        sizes = x.shape[-dimensions:]
        if divisor_override is None or not x.dtype.is_floating_point:
            return NotImplemented
        if ceil_mode and not all(is_static(size) for size in sizes):
            return NotImplemented
        windows, steps = each(kernel, dimensions), each(stride or kernel, dimensions)
        margins = each(padding, dimensions)
        if ceil_mode:
            ends: list[int] = []
            for size, window, step, margin in zip(sizes, windows, steps, margins, strict=True):
                last = (_windows(size, window, step, margin, True) - 1) * step
                ends = [margin, last + window - margin - size, *ends]
            x, margins = padded_or_cut(x, ends, 0.0), [0] * dimensions
        mean = operator(x, windows, steps, margins)
        return mean * (math.prod(windows) / divisor_override)

    return decomposition


for _operator, _dimensions in ((aten.avg_pool2d.default, 2), (aten.avg_pool3d.default, 3)):
    FAMILY.enter(
        _operator,
        _with_divisor(_operator, _dimensions),
        reason="torch.onnx ignores the divisor",
    )


@dataclass(frozen=True)
class Span:
    """What the windows over one dimension reach: how many, and the padding that they need."""

    count: int
    before: int
    after: int


def _reached(
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> list[Span]:
    """Return what the windows of a max pooling reach in each dimension."""
    count = len(sizes)
    spans = []
    for size, window, step, before, apart in zip(
        sizes, each(kernel, count), each(stride or kernel, count), each(padding, count),
        each(dilation, count), strict=True,
    ):  # fmt: skip
        reach = apart * (window - 1) + 1
        windows = _windows(size, reach, step, before, ceil_mode)
        spans.append(Span(windows, before, (windows - 1) * step + reach - size - before))
    return spans


def spans_to_mend(
    x: Tensor,
    dimensions: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> list[Span] | None:
    """Return what the windows of a max pooling reach; None where it stays as it is.

    That is where the compiler takes it, and where nothing can be done: sizes that vary, integers.
    """
    sizes = x.shape[-dimensions:]
    if not (x.dtype.is_floating_point and all(is_static(size) for size in sizes)):
        return None
    spans = _reached(sizes, kernel, stride, padding, dilation, ceil_mode)
    exact = not ceil_mode and all(span.count > 1 or span.after == span.before for span in spans)
    return None if exact else spans


def _max_pool(operator: OpOverload, dimensions: int) -> Decomposition:
    """Return the pooling of an input that is padded to just what the windows reach."""

    def decomposition(
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        spans = spans_to_mend(x, dimensions, kernel, stride, padding, dilation, ceil_mode)
        if spans is None:
            return NotImplemented
        ends = [end for span in reversed(spans) for end in (span.before, span.after)]
        padded = torch.constant_pad_nd(x, ends, -math.inf)
        steps, spread = each(stride or kernel, dimensions), each(dilation, dimensions)
        return operator(padded, kernel, steps, [0] * dimensions, spread)

    return decomposition


for _operator, _dimensions in (
    (aten.max_pool1d.default, 1),
    (aten.max_pool2d.default, 2),
    (aten.max_pool3d.default, 3),
):
    FAMILY.enter(
        _operator,
        _max_pool(_operator, _dimensions),
        reason="where a dimension of the result is 1, the input must be as long as the window",
    )
