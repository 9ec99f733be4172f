"""Comparisons that the compiler folds wrongly, in equivalent forms.

A constant float tensor compared with an integer: `full(2.0) < 1` was folded to true. A float tensor
compared with itself, as a test for NaN: `x == x` was folded to true.
"""

from __future__ import annotations

import torch
from torch.fx import Node

from .inserter import Inserter

aten = torch.ops.aten

TARGETS = (
    aten.eq.Tensor,
    aten.ge.Tensor,
    aten.le.Tensor,
    aten.ne.Tensor,
    aten.eq.Scalar,
    aten.ge.Scalar,
    aten.gt.Scalar,
    aten.le.Scalar,
    aten.lt.Scalar,
    aten.ne.Scalar,
)


def rewrite_comparison(inserter: Inserter) -> None:
    """Convert integers that float tensors are compared with to float; test for NaN by `isnan`."""
    tensor, other = inserter.anchor.args
    assert isinstance(tensor, Node)
    if not tensor.meta["val"].dtype.is_floating_point:
        return
    if type(other) is int:
        inserter.anchor.args = (tensor, float(other))
    elif other is tensor and inserter.anchor.target is aten.ne.Tensor:
        inserter.become(aten.isnan.default, tensor)
    elif other is tensor:
        inserter.become(aten.logical_not.default, inserter.call(aten.isnan.default, tensor))
