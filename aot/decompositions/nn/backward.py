"""Backward operators, which the dialect has and the compiler does not lower."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...compat.decomposition_tables import decomposition_table
from ...compat.operators import OpOverload, OpOverloadPacket
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("backward")

BY_TORCH: tuple[OpOverloadPacket, ...] = (
    aten._log_softmax_backward_data,
    aten._softmax_backward_data,
    aten.binary_cross_entropy_backward,
    aten.elu_backward,
    aten.embedding_dense_backward,
    aten.gelu_backward,
    aten.hardtanh_backward,
    aten.leaky_relu_backward,
    aten.log_sigmoid_backward,
    aten.mse_loss_backward,
    aten.native_batch_norm_backward,
    aten.native_dropout_backward,
    aten.native_group_norm_backward,
    aten.native_layer_norm_backward,
    aten.nll_loss2d_backward,
    aten.nll_loss_backward,
    aten.rrelu_with_noise_backward,
    aten.sigmoid_backward,
    aten.softplus_backward,
    aten.tanh_backward,
)
"""Operators that are decomposed as torch does: they are not lowered, or not for all arguments."""

for _packet in BY_TORCH:
    _operator: OpOverload = _packet.default
    FAMILY.enter(
        _operator, decomposition_table[_operator], reason="not lowered, or not for all arguments"
    )


@FAMILY.decomposes(aten.threshold_backward.default, reason="has the type of the gradient alone")
def threshold_backward(grad: Tensor, x: Tensor, threshold: Any) -> Tensor:
    """`threshold_backward`: the gradient where x is above the threshold, and 0 elsewhere."""
    grad = grad.to(torch.result_type(grad, x))
    return torch.where(x <= threshold, torch.zeros_like(grad), grad)


@FAMILY.decomposes(
    aten.max_pool2d_with_indices_backward.default, reason="not lowered for all arguments"
)
def max_pool2d_with_indices_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """`max_pool2d_with_indices_backward`: a scatter-add of gradients to the maxima."""
    flat = torch.zeros_like(x).flatten(-2)
    return flat.scatter_add(-1, indices.flatten(-2), grad.flatten(-2)).reshape(x.shape)


@FAMILY.decomposes(
    aten.convolution_backward.default, reason="not lowered for transposed convolutions"
)
def transposed_convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    """`convolution_backward` of transposed convolutions, by convolutions."""
    if not transposed:
        return NotImplemented
    plain = (stride, padding, dilation, False, [0] * len(stride), groups)
    grad_x = aten.convolution.default(grad, weight, None, *plain) if output_mask[0] else None
    grad_weight = grad_bias = None
    if output_mask[1]:
        _, grad_weight, _ = aten.convolution_backward.default(
            x, grad, weight, None, *plain, [False, True, False]
        )
    if output_mask[2]:
        grad_bias = grad.sum([0, *range(2, grad.dim())])
    return grad_x, grad_weight, grad_bias


def _windows(starts: Tensor, ends: Tensor, size: Any, counts: Tensor) -> Tensor:
    """Return the matrix of averages over windows of an axis.

    Args:
        starts: The first index of each window; negative in the padding.
        ends: The index behind its last.
        size: The size of the axis.
        counts: The divisor of each sum.
    """
    places = torch.arange(size, device=starts.device)[None]
    inside = (places >= starts[:, None]) & (places < ends[:, None])
    return inside / counts[:, None]


def _spread(grad: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the gradient of averages over the windows of the last two axes."""
    return torch.matmul(torch.matmul(rows.to(grad.dtype).t(), grad), columns.to(grad.dtype))


@FAMILY.decomposes(aten._adaptive_avg_pool2d_backward.default, reason="not lowered")
def adaptive_average_backward(grad: Tensor, x: Tensor) -> Tensor:
    """`_adaptive_avg_pool2d_backward`, as matrix products."""

    def windows(axis: int) -> Tensor:
        size, count = x.shape[axis], grad.shape[axis]
        index = torch.arange(count, device=x.device)
        starts, ends = index * size // count, ((index + 1) * size + count - 1) // count
        return _windows(starts, ends, size, ends - starts)

    return _spread(grad, windows(-2), windows(-1))


@FAMILY.decomposes(aten.avg_pool2d_backward.default, reason="not lowered")
def average_backward(
    grad: Tensor,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """`avg_pool2d_backward`, as matrix products."""

    def windows(axis: int) -> Tensor:
        size = x.shape[axis]
        kernel, pad, step = (given[axis % len(given)] for given in per_axis)
        starts = torch.arange(grad.shape[axis], device=x.device) * step - pad
        ends = (starts + kernel).clamp(max=size + pad)
        counts = ends - starts
        if divisor_override is not None:
            counts = torch.ones_like(counts)
        elif not count_include_pad:
            counts = ends.clamp(max=size) - starts.clamp(min=0)
        return _windows(starts, ends, size, counts)

    per_axis = (kernel_size, padding, stride or kernel_size)
    return _spread(grad, windows(-2), windows(-1)) / (divisor_override or 1)


@FAMILY.decomposes(
    aten.unfold_backward.default,
    reason="torch's decomposition writes once for each place in a window, each time to all of it",
)
def unfold_backward(
    grad: Tensor, input_size: Sequence[Any], dimension: int, size: int, step: int
) -> Any:
    """`unfold_backward`: the sum of overlapping windows, as `istft` takes it."""
    if not input_size:
        return NotImplemented
    dim = dimension % len(input_size)
    starts = torch.arange(grad.shape[dim], device=grad.device) * step
    places = (starts[:, None] + torch.arange(size, device=grad.device)).flatten()
    windows = grad.movedim(-1, dim + 1).flatten(dim, dim + 1)
    return grad.new_zeros(input_size).index_add(dim, places, windows)
