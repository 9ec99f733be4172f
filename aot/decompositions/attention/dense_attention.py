"""Attention in the one form that the compiler takes whole: equal ranks, equal batch sizes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("attention")


@FAMILY.decomposes(
    aten.scaled_dot_product_attention.default,
    reason="in float64 the lowering rounds to float32; it has no dropout",
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
    """Return attention by its definition, for float64 or with dropout."""
    if query.dtype is not torch.float64 and not dropout_p:
        return NotImplemented
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = torch.matmul(query, key.transpose(-2, -1)) * factor
    if is_causal:
        rows = torch.arange(scores.shape[-2], device=query.device)[:, None]
        visible = torch.arange(scores.shape[-1], device=query.device)[None] <= rows
        scores = scores.masked_fill(~visible, -math.inf)
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    hidden = (scores == -math.inf).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(hidden, 0.0), -1).masked_fill(hidden, 0.0)
    return torch.matmul(torch.dropout(weights, dropout_p, dropout_p > 0), value)


@FAMILY.decomposes(
    aten.scaled_dot_product_attention.default,
    reason="the lowering wants operands and mask of one rank, at least 3, and one batch size",
)
def attention_of_one_rank(
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
    """Return attention on operands that were unsqueezed and expanded to fit each other."""
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
