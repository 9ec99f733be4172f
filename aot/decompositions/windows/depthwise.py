"""Depthwise convolutions of volumes, and transposed ones, by convolutions of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ..registry import Decomposition, Family
from .explicit_padding import each
from .padding import padded_or_cut

aten = torch.ops.aten

FAMILY = Family("depthwise convolutions")

_CONVOLUTIONS = {
    1: aten.conv1d.default,
    2: aten.conv2d.default,
    3: aten.conv3d.default,
}


def _is_depthwise(x: Tensor, weight: Tensor, groups: int) -> bool:
    """Return whether each channel is a group, with one channel as its result."""
    dense = x.dim() == weight.dim()
    return dense and 1 < groups and x.shape[1] == groups == weight.shape[0] and weight.shape[1] == 1


@FAMILY.decomposes(aten.conv3d.default, reason="no lowering of depthwise convolutions of volumes")
def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
) -> Any:
    """`conv3d` of single channels: a sum of convolutions of pictures, one for each layer."""
    if not _is_depthwise(x, weight, groups):
        return NotImplemented
    steps = [each(amounts, 3) for amounts in (stride, padding, dilation)]
    (step, *strides), (margin, *margins), (distance, *dilations) = steps
    x = padded_or_cut(x, [0, 0, 0, 0, margin, margin], 0)
    layers = weight.shape[2]
    count = (x.shape[2] - distance * (layers - 1) - 1) // step + 1
    total = None
    for layer in range(layers):
        first = layer * distance
        pictures = x[:, :, first : first + (count - 1) * step + 1 : step].transpose(1, 2)
        part = aten.conv2d.default(
            pictures.flatten(0, 1), weight[:, :, layer], None, strides, margins, dilations, groups
        )
        total = part if total is None else total + part
    assert total is not None
    result = total.reshape(x.shape[0], count, *total.shape[1:]).transpose(1, 2)
    return result if bias is None else result + bias[:, None, None, None]


def _transposed(dimensions: int) -> Decomposition:
    """Return a transposed convolution of single channels, as one of a tensor with gaps."""

    def decomposition(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sequence[int] = (1,),
        padding: Sequence[int] = (0,),
        output_padding: Sequence[int] = (0,),
        groups: int = 1,
        dilation: Sequence[int] = (1,),
    ) -> Any:
        if not _is_depthwise(x, weight, groups):
            return NotImplemented
        dilations = each(dilation, dimensions)
        ends: list[int] = []
        every = (stride, padding, output_padding)
        for axis, (step, margin, more) in enumerate(
            zip(*(each(amounts, dimensions) for amounts in every), strict=True)
        ):
            if step > 1:
                gap = x.new_zeros((*x.shape[: axis + 3], step - 1, *x.shape[axis + 3 :]))
                x = torch.cat([x.unsqueeze(axis + 3), gap], axis + 3).flatten(axis + 2, axis + 3)
            reach = dilations[axis] * (weight.shape[axis + 2] - 1) - margin
            ends = [reach, reach + more - (step - 1), *ends]
        kernel = weight.flip([*range(2, dimensions + 2)])
        ones = [1] * dimensions
        operator = _CONVOLUTIONS[dimensions]
        padded = padded_or_cut(x, ends, 0)
        return operator(padded, kernel, bias, ones, [0] * dimensions, dilations, groups)

    return decomposition


_TRANSPOSED: dict[int, OpOverload] = {
    1: aten.conv_transpose1d.default,
    2: aten.conv_transpose2d.input,
    3: aten.conv_transpose3d.input,
}

for _dimensions, _operator in _TRANSPOSED.items():
    FAMILY.enter(
        _operator,
        _transposed(_dimensions),
        reason="no lowering of depthwise transposed convolutions",
    )


@FAMILY.decomposes(aten.convolution.default, reason="no lowering of some depthwise convolutions")
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """`convolution` of single channels, where `conv3d` or its transposed kind is decomposed."""
    dimensions = x.dim() - 2
    if transposed:
        steps = [stride, padding, output_padding, groups, dilation]
        return _transposed(dimensions)(x, weight, bias, *steps)
    if dimensions != 3:
        return NotImplemented
    return conv3d(x, weight, bias, stride, padding, dilation, groups)
