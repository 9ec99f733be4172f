"""Comparisons that the compiler folds wrongly, said in another way.

Of float tensors with whole numbers, where the tensor is a constant: `full(2.0) < 1` came out true.
Of a float tensor with itself, which asks for NaN: `x == x` came out true.
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
    """Turn the number that a float tensor is compared with into a float; ask for NaN by name."""
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
