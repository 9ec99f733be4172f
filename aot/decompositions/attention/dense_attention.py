"""Attention in the form that the compiler lowers: operands of equal rank and batch sizes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..registry import Family
from .scores import attention_scores, scale_of

aten = torch.ops.aten

FAMILY = Family("attention")


@FAMILY.decomposes(
    aten.scaled_dot_product_attention.default,
    reason="the lowering rounds float64 to float32, and has no dropout",
)
def attention_by_definition(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """`scaled_dot_product_attention` of float64 or with dropout, by its definition."""
    if query.dtype is not torch.float64 and not dropout_p:
        return NotImplemented
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    factor = scale_of(query, scale)
    scores = attention_scores(query, key, factor, is_causal=is_causal, mask=attn_mask)
    hidden = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(hidden, 0.0), -1).masked_fill(hidden, 0.0)
    return torch.matmul(torch.dropout(weights, dropout_p, dropout_p > 0), value)


@FAMILY.decomposes(
    aten.scaled_dot_product_attention.default,
    reason="the lowering requires operands and mask of one rank, at least 3, and one batch size",
)
def attention_of_equal_ranks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """`scaled_dot_product_attention` of operands broadcast to one rank and batch size."""
    rank = max(3, query.dim(), key.dim(), value.dim())
    mask_rank = rank if attn_mask is None else attn_mask.dim()
    operands = [query, key, value]
    heads = 1 if enable_gqa else 0
    batches = [operand.shape[: operand.dim() - 2 - heads] for operand in operands]
    fitting = all(operand.dim() == rank for operand in operands)
    if fitting and mask_rank == rank and batches[0] == batches[1] == batches[2]:
        return NotImplemented
    broadcast: Any = torch.broadcast_shapes
    common = tuple(broadcast(*batches))
    batch = (1,) * (rank - 2 - heads - len(common)) + common
    fitted = [operand.expand(*batch, *operand.shape[-2 - heads :]) for operand in operands]
    if attn_mask is not None:
        attn_mask = attn_mask[(None,) * (rank - mask_rank)]
    result = aten.scaled_dot_product_attention.default(
        *fitted, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    wanted = max(query.dim(), key.dim(), value.dim())
    return result.squeeze(0) if wanted < rank else result
