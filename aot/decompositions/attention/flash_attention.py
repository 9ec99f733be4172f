"""Flash attention of CPUs, with its logsumexp for the backward pass, as in torch.compile graphs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..registry import Family
from .scores import attention_scores, scale_of

aten = torch.ops.aten

FAMILY = Family("flash attention")


def _scores_and_logsumexp(
    query: Tensor, key: Tensor, is_causal: bool, mask: Tensor | None, scale: float
) -> tuple[Tensor, Tensor]:
    """Return the scores and their logsumexp over keys, both in float32 or float64."""
    wide = torch.float64 if query.dtype is torch.float64 else torch.float32
    scores = attention_scores(query.to(wide), key.to(wide), scale, is_causal=is_causal, mask=mask)
    largest = scores.amax(-1, keepdim=True)
    largest = largest.masked_fill(largest == -math.inf, 0.0)
    return scores, largest.squeeze(-1) + (scores - largest).exp().sum(-1).log()


def _probabilities(scores: Tensor, logsumexp: Tensor) -> Tensor:
    """Return the softmax of scores; 0 in fully masked rows."""
    hidden = (logsumexp == -math.inf).unsqueeze(-1)
    shift = logsumexp.unsqueeze(-1).masked_fill(hidden, 0.0)
    return (scores - shift).exp().masked_fill(hidden, 0.0)


@FAMILY.decomposes(
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    reason="not in the dialect; the decomposition of torch does not return the logsumexp",
)
def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`_scaled_dot_product_flash_attention_for_cpu`: attention and the logsumexp of its scores."""
    scores, logsumexp = _scores_and_logsumexp(
        query, key, is_causal, attn_mask, scale_of(query, scale)
    )
    wide = torch.matmul(_probabilities(scores, logsumexp), value.to(scores.dtype))
    return wide.to(query.dtype), logsumexp


@FAMILY.decomposes(
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
    reason="not in the dialect, and torch has no decomposition",
)
def flash_attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`_scaled_dot_product_flash_attention_for_cpu_backward`: the gradients of its operands."""
    factor = scale_of(query, scale)
    scores, _ = _scores_and_logsumexp(query, key, is_causal, attn_mask, factor)
    wide = scores.dtype
    weights = _probabilities(scores, logsumexp.to(wide))
    grad = grad_out.to(wide)
    grad_value = torch.matmul(weights.transpose(-2, -1), grad)
    grad_weights = torch.matmul(grad, value.to(wide).transpose(-2, -1))
    inner = (grad * out.to(wide)).sum(-1, keepdim=True)
    grad_scores = weights * (grad_weights - inner) * factor
    grad_query = torch.matmul(grad_scores, key.to(wide))
    grad_key = torch.matmul(grad_scores.transpose(-2, -1), query.to(wide))
    dtype = query.dtype
    return grad_query.to(dtype), grad_key.to(dtype), grad_value.to(dtype)
