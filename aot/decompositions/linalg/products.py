"""Products of a vector and a batch of matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("products")

_REASON = "no lowering for a vector and a batch of matrices"


@FAMILY.decomposes(aten.matmul.default, reason=_REASON)
def matmul(x: Tensor, y: Tensor) -> Any:
    """`matmul` of a vector and a batch of matrices: the vector is a matrix of one row or column."""
    if x.dim() > 2 and y.dim() == 1:
        return torch.matmul(x, y[:, None]).squeeze(-1)
    if x.dim() == 1 and y.dim() > 2:
        return torch.matmul(x[None], y).squeeze(-2)
    return NotImplemented


@FAMILY.decomposes(aten.linear.default, reason=_REASON)
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """`linear` by a vector of weights, which has one feature as its result."""
    if weight.dim() != 1:
        return NotImplemented
    result = torch.matmul(x, weight)
    return result if bias is None else result + bias
