"""Normalisation by statistics of each picture or sequence."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .elementary import in_single
from .family import Family

aten = torch.ops.aten

FAMILY = Family("normalization")


@FAMILY.decomposes(aten.batch_norm.default, reason="torch.onnx takes the running statistics")
def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """Return each channel with the mean 0 and the variance 1 that it has in this batch."""
    return _normal(x, weight, bias, [0, *range(2, x.dim())], eps) if training else NotImplemented


@FAMILY.decomposes(
    aten.instance_norm.default, reason="with sizes that vary it is NaN, and refused without weights"
)
def instance_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """Return each channel of each sample with mean 0 and variance 1, then scaled and shifted."""
    if use_input_stats and running_mean is not None:
        raise NotImplementedError(
            "it changes its running statistics, which torch.export does not see; call eval() on "
            "the layer, or give it no running statistics"
        )
    fixed = all(isinstance(size, int) for size in x.shape)
    if fixed and weight is not None and bias is not None:
        return NotImplemented
    if not use_input_stats:
        return torch.batch_norm(
            x, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled
        )
    return _normal(x, weight, bias, list(range(2, x.dim())), eps)


@FAMILY.decomposes(aten.rms_norm.default, reason="without eps it is computed with 0")
def rms_norm(
    x: Tensor, normalized_shape: list[int], weight: Tensor | None = None, eps: float | None = None
) -> Any:
    """Return x scaled to a root mean square of 1, with torch's eps where none is given.

    That is the epsilon of the type that torch computes in: float32 for half precision.
    """
    if eps is not None:
        return NotImplemented
    return aten.rms_norm.default(x, normalized_shape, weight, torch.finfo(in_single(x).dtype).eps)


def _normal(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, dims: list[int], eps: float
) -> Tensor:
    variance, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    result = (x - mean) * torch.rsqrt(variance + eps)
    per_channel = (-1, *[1] * (x.dim() - 2))
    if weight is not None:
        result = result * weight.view(per_channel)
    return result if bias is None else result + bias.view(per_channel)
