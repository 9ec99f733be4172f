"""Normalisation by statistics of each picture or sequence."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .family import Family

aten = torch.ops.aten

FAMILY = Family("normalization")


@FAMILY.decomposes(
    aten.instance_norm.default, reason="with sizes that vary it is NaN, or refused without weights"
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
    if all(isinstance(size, int) for size in x.shape):
        return NotImplemented
    if not use_input_stats:
        return torch.batch_norm(
            x, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled
        )
    variance, mean = torch.var_mean(x, list(range(2, x.dim())), correction=0, keepdim=True)
    result = (x - mean) * torch.rsqrt(variance + eps)
    per_channel = (-1, *[1] * (x.dim() - 2))
    if weight is not None:
        result = result * weight.view(per_channel)
    return result if bias is None else result + bias.view(per_channel)
