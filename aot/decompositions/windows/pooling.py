"""Pooling with a single window, with a divisor, and with or without a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ...compat.pytrees import tree_map
from ...spec.sizes import is_static
from ..real_types import in_single
from ..registry import Decomposition, Family
from .explicit_padding import REASON, Window, each, explicit_padding, windows_of
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
"""Operators over windows, with the number of their spatial dimensions."""


def _batched(operator: OpOverload, dimensions: int) -> Decomposition:
    def decomposition(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.dim() != dimensions + 1:
            return NotImplemented
        return tree_map(lambda result: result.squeeze(0), operator(x[None], *args, **kwargs))

    return decomposition


for _operator, _dimensions in _WINDOWED:
    FAMILY.enter(
        _operator,
        _batched(_operator, _dimensions),
        reason="the lowering requires a batch dimension",
    )


def _single_mean(operator: OpOverload, dimensions: int) -> Decomposition:
    """Return the mean pooling of an input that is cut to the window where there is only one."""

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
        cut = x
        windows = windows_of(x.shape[-dimensions:], kernel, stride)
        for axis, window in enumerate(windows, x.dim() - dimensions):
            if window.is_inexact:
                cut = cut.narrow(axis, 0, window.kernel)
        return NotImplemented if cut is x else operator(cut, kernel, stride)

    return decomposition


for _operator, _dimensions in (
    (aten.avg_pool1d.default, 1),
    (aten.avg_pool2d.default, 2),
    (aten.avg_pool3d.default, 3),
):
    FAMILY.enter(
        _operator,
        _single_mean(_operator, _dimensions),
        reason=REASON,
    )


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
        kernel, steps = each(kernel, dimensions), each(stride or kernel, dimensions)
        margins = each(padding, dimensions)
        if ceil_mode:
            windows = windows_of(sizes, kernel, steps, margins, ceil_mode=True)
            ends = explicit_padding(windows, to_last=True)
            assert ends is not None
            x, margins = padded_or_cut(x, ends, 0.0), [0] * dimensions
        mean = operator(x, kernel, steps, margins)
        return mean * (math.prod(kernel) / divisor_override)

    return decomposition


for _operator, _dimensions in ((aten.avg_pool2d.default, 2), (aten.avg_pool3d.default, 3)):
    FAMILY.enter(
        _operator,
        _with_divisor(_operator, _dimensions),
        reason="torch.onnx ignores the divisor",
    )


def _mean_beyond_the_end(operator: OpOverload, dimensions: int) -> Decomposition:
    """Return the mean pooling whose last windows may end in the padding or beyond."""

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
        static = all(is_static(size) for size in sizes)
        if not (ceil_mode and static and x.dtype.is_floating_point) or divisor_override is not None:
            return NotImplemented
        windows = windows_of(sizes, kernel, stride, padding, ceil_mode=True)
        ends = explicit_padding(windows, to_last=True)
        assert ends is not None
        steps = [window.stride for window in windows]
        wide = in_single(padded_or_cut(x, ends, 0.0))
        result = operator(wide, [window.kernel for window in windows], steps)
        for axis, window in enumerate(windows, -dimensions):
            share = _share(window, wide, count_include_pad)
            result = result * share.reshape(-1, *[1] * (-axis - 1))
        return result.to(x.dtype)

    return decomposition


def _share(window: Window, like: Tensor, count_include_pad: bool) -> Tensor:
    """Return the size of the kernel over the number of elements that count, for each window."""
    starts = torch.arange(window.count, device=like.device) * window.stride - window.padding
    ends = (starts + window.kernel).clamp(max=window.size + window.padding)
    if not count_include_pad:
        starts, ends = starts.clamp(min=0), ends.clamp(max=window.size)
    return window.kernel / (ends - starts).to(like.dtype)


for _operator, _dimensions in (
    (aten.avg_pool1d.default, 1),
    (aten.avg_pool2d.default, 2),
    (aten.avg_pool3d.default, 3),
):
    FAMILY.enter(
        _operator,
        _mean_beyond_the_end(_operator, _dimensions),
        reason="the lowering confuses the dimensions of some windows beyond the end",
    )


def _max_pool(operator: OpOverload, dimensions: int) -> Decomposition:
    """Return the max pooling of an input that is padded up to the last window."""

    def decomposition(
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        sizes = x.shape[-dimensions:]
        if not (x.dtype.is_floating_point and all(is_static(size) for size in sizes)):
            return NotImplemented
        windows = windows_of(sizes, kernel, stride, padding, dilation, ceil_mode=ceil_mode)
        ends = explicit_padding(windows, to_last=True)
        if ends is None:
            return NotImplemented
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
        reason=REASON,
    )
