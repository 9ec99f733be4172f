"""Convolutions whose result has a single row or column, and groups of one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..registry import Decomposition, Family
from .padding import padded_or_cut
from .pooling import each

aten = torch.ops.aten

FAMILY = Family("convolutions")

_REASON = (
    "where a dimension of the result is 1, the lowering wants the padded input to be just as long "
    "as the kernel reaches"
)


def _surplus(size: Any, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Return how many padded elements at the end the kernel never reaches, if that matters."""
    if not is_static(size):
        return 0
    reach = dilation * (kernel - 1) + 1
    padded = size + 2 * padding
    return padded - reach if reach < padded < reach + stride else 0


def _padded_exactly(
    x: Tensor, weight: Tensor, stride: list[int], padding: list[int], dilation: list[int]
) -> Tensor | None:
    """Return the input padded (or cut) to what the kernel reaches, or None if it is already."""
    sizes, kernels = x.shape[-len(stride) :], weight.shape[2:]
    every = zip(sizes, kernels, stride, padding, dilation, strict=True)
    surplus = [_surplus(*dimension) for dimension in every]
    if not any(surplus):
        return None
    ends: list[int] = []
    for before, cut in zip(reversed(padding), reversed(surplus), strict=True):
        ends += [before, before - cut]
    return padded_or_cut(x, ends, 0.0)


def _is_refused(x: Tensor, groups: int) -> bool:
    """Return whether IREE refuses groups: of one picture whose size varies, unless depthwise.

    It drops the batch of 1, and then cannot distribute the work («write affecting operations on
    global resources», 3.13).
    """
    sizes = x.shape[2:]
    several = 1 < groups < x.shape[1]
    fixed = all(is_static(size) for size in sizes)
    return several and is_static(x.shape[0]) and x.shape[0] == 1 and not fixed


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
        padded = _padded_exactly(x, weight, *steps)
        if padded is None:
            return NotImplemented
        return operator(padded, weight, bias, steps[0], [0] * dimensions, steps[2], groups)

    return decomposition


for _operator, _dimensions in (
    (aten.conv1d.default, 1),
    (aten.conv2d.default, 2),
    (aten.conv3d.default, 3),
):
    FAMILY.enter(_operator, _convolution(_operator, _dimensions), reason=_REASON)


@FAMILY.decomposes(aten.convolution.default, reason=_REASON)
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
    """Return the convolution of an input that is padded to what the kernel reaches."""
    if transposed:
        return NotImplemented
    none = [0] * len(padding)

    def operator(x: Tensor, weight: Tensor, bias: Tensor | None, *rest: Any) -> Any:
        *steps, groups = rest
        return aten.convolution.default(x, weight, bias, *steps, False, none, groups)

    if _is_refused(x, groups):
        return _by_group(operator, x, weight, bias, [stride, padding, dilation], groups)
    padded = _padded_exactly(x, weight, stride, padding, dilation)
    if padded is None:
        return NotImplemented
    return operator(padded, weight, bias, stride, none, dilation, groups)
