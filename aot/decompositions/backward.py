"""The operators that backward passes are made of, which the compiler knows by name only."""

from __future__ import annotations

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload, OpOverloadPacket

from .family import Family

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
    aten.max_pool2d_with_indices_backward,
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
    aten.threshold_backward,
)
"""Operators of the torch dialect that are not lowered, or not for all arguments."""

for _packet in BY_TORCH:
    _operator: OpOverload = _packet.default
    FAMILY.enter(
        _operator, decomposition_table[_operator], reason="not lowered, or not for all arguments"
    )
