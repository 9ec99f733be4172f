"""Convolutions with a single window, and grouped convolutions with a batch of 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..registry import Decomposition, Family
from .explicit_padding import REASON, each, explicit_padding, windows_of
from .padding import padded_or_cut

aten = torch.ops.aten

FAMILY = Family("convolutions")


def _padded_explicitly(
    x: Tensor, weight: Tensor, stride: list[int], padding: list[int], dilation: list[int]
) -> Tensor | None:
    """Return the input with explicit padding up to the last window; None if none is needed."""
    sizes = x.shape[-len(stride) :]
    ends = explicit_padding(windows_of(sizes, weight.shape[2:], stride, padding, dilation))
    return None if ends is None else padded_or_cut(x, ends, 0.0)


def _is_refused(x: Tensor, groups: int) -> bool:
    """Return whether IREE refuses groups: batch 1, dynamic spatial sizes, not depthwise.

    It drops the batch of 1, and then cannot distribute the work ("write affecting operations on
    global resources", 3.13).
    """
    sizes = x.shape[2:]
    several = 1 < groups < x.shape[1]
    static = all(is_static(size) for size in sizes)
    return several and is_static(x.shape[0]) and x.shape[0] == 1 and not static


def _by_group(
    operator: Any,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    steps: Sequence[Sequence[int]],
    groups: int,
) -> Tensor:
    inputs, outputs = x.shape[1] // groups, weight.shape[0] // groups
    parts = []
    for group in range(groups):
        first = group * outputs
        part = None if bias is None else bias.narrow(0, first, outputs)
        kernel = weight.narrow(0, first, outputs)
        parts.append(operator(x.narrow(1, group * inputs, inputs), kernel, part, *steps, 1))
    return torch.cat(parts, 1)


def _convolution(operator: Any, dimensions: int) -> Decomposition:
    def decomposition(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sequence[int] = (1,),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        groups: int = 1,
    ) -> Any:
        steps = [each(amounts, dimensions) for amounts in (stride, padding, dilation)]
        if _is_refused(x, groups):
            return _by_group(operator, x, weight, bias, steps, groups)
        padded = _padded_explicitly(x, weight, *steps)
        if padded is None:
            return NotImplemented
        return operator(padded, weight, bias, steps[0], [0] * dimensions, steps[2], groups)

    return decomposition


for _operator, _dimensions in (
    (aten.conv1d.default, 1),
    (aten.conv2d.default, 2),
    (aten.conv3d.default, 3),
):
    FAMILY.enter(_operator, _convolution(_operator, _dimensions), reason=REASON)


def _same_size(operator: Any, dimensions: int) -> Decomposition:
    def decomposition(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sequence[int] = (1,),
        padding: str = "valid",
        dilation: Sequence[int] = (1,),
        groups: int = 1,
    ) -> Any:
        """`conv.padding`: a result of the size of the input; an odd amount is padded at the end."""
        if padding != "same":
            return NotImplemented
        kernel = weight.shape[2:]
        amounts = [
            by * (size - 1) for by, size in zip(each(dilation, dimensions), kernel, strict=True)
        ]
        if all(is_static(amount) and amount % 2 == 0 for amount in amounts):
            sides = [amount // 2 for amount in amounts]
            return operator(x, weight, bias, stride, sides, dilation, groups)
        for dim, amount in enumerate(amounts, x.dim() - dimensions):
            before, after = (
                x.new_zeros((*x.shape[:dim], count, *x.shape[dim + 1 :]))
                for count in (amount // 2, amount - amount // 2)
            )
            x = torch.cat([before, x, after], dim)
        return operator(x, weight, bias, stride, [0] * dimensions, dilation, groups)

    return decomposition


for _operator, _whole, _dimensions in (
    (aten.conv1d.padding, aten.conv1d.default, 1),
    (aten.conv2d.padding, aten.conv2d.default, 2),
    (aten.conv3d.padding, aten.conv3d.default, 3),
):
    FAMILY.enter(
        _operator,
        _same_size(_whole, _dimensions),
        reason="an even kernel is padded at one side only, and read beyond the end",
    )


@FAMILY.decomposes(aten.convolution.default, reason=REASON)
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
) -> Any:
    """`convolution` of an input with explicit padding up to the last window."""
    if transposed:
        return NotImplemented
    none = [0] * len(padding)

    def operator(x: Tensor, weight: Tensor, bias: Tensor | None, *rest: Any) -> Any:
        *steps, groups = rest
        return aten.convolution.default(x, weight, bias, *steps, False, none, groups)

    if _is_refused(x, groups):
        return _by_group(operator, x, weight, bias, [stride, padding, dilation], groups)
    padded = _padded_explicitly(x, weight, stride, padding, dilation)
    if padded is None:
        return NotImplemented
    return operator(padded, weight, bias, stride, none, dilation, groups)
