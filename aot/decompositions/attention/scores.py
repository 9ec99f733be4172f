"""Attention scores with causal and explicit masks."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def scale_of(query: Tensor, scale: float | None) -> float:
    """Return the factor of the scores: 1 / sqrt(head size) unless one is given."""
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


def attention_scores(
    query: Tensor, key: Tensor, scale: float, *, is_causal: bool, mask: Tensor | None
) -> Tensor:
    """Return the scores of keys for queries, -inf where they are masked.

    Args:
        query: Of shape (..., queries, size).
        key: Of shape (..., keys, size).
        scale: The factor of the scores.
        is_causal: Mask keys after the query, by their indices.
        mask: Bool (False: masked), or values to add; broadcast to (..., queries, keys).
    """
    scores = torch.matmul(query, key.transpose(-2, -1)) * scale
    if is_causal:
        rows = torch.arange(scores.shape[-2], device=query.device)[:, None]
        visible = torch.arange(scores.shape[-1], device=query.device)[None] <= rows
        scores = scores.masked_fill(~visible, -math.inf)
    if mask is not None and mask.dtype is torch.bool:
        return scores.masked_fill(~mask, -math.inf)
    return scores if mask is None else scores + mask
