"""Normalisation by batch statistics, or by statistics of each sample."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..real_types import in_single
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("normalization")


@FAMILY.decomposes(aten.batch_norm.default, reason="torch.onnx uses the running statistics")
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
    """`batch_norm` in training: normalisation by the statistics of the batch."""
    return (
        _normalized(x, weight, bias, [0, *range(2, x.dim())], eps) if training else NotImplemented
    )


@FAMILY.decomposes(
    aten.instance_norm.default, reason="NaN for dynamic sizes, and refused without weights"
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
    """`instance_norm`: normalisation of each channel of each sample.

    Raises:
        NotImplementedError: It would update running statistics.
    """
    if use_input_stats and running_mean is not None:
        raise NotImplementedError(
            "instance_norm updates its running statistics, which torch.export does not capture; "
            "call eval() on the layer, or create it with track_running_stats=False"
        )
    static = all(is_static(size) for size in x.shape)
    if static and weight is not None and bias is not None:
        return NotImplemented
    if not use_input_stats:
        return torch.batch_norm(
            x, weight, bias, running_mean, running_var, False, momentum, eps, cudnn_enabled
        )
    return _normalized(x, weight, bias, list(range(2, x.dim())), eps)


@FAMILY.decomposes(aten.rms_norm.default, reason="without eps it is computed with 0")
def rms_norm(
    x: Tensor, normalized_shape: list[int], weight: Tensor | None = None, eps: float | None = None
) -> Any:
    """`rms_norm` without eps: the epsilon of the type that torch computes in, float32 for half."""
    if eps is not None:
        return NotImplemented
    return aten.rms_norm.default(x, normalized_shape, weight, torch.finfo(in_single(x).dtype).eps)


def _normalized(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, dims: list[int], eps: float
) -> Tensor:
    variance, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    result = (x - mean) * torch.rsqrt(variance + eps)
    per_channel = (-1, *[1] * (x.dim() - 2))
    if weight is not None:
        result = result * weight.view(per_channel)
    return result if bias is None else result + bias.view(per_channel)
