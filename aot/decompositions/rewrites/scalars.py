"""Comparisons that the compiler folds wrongly, said in another way.

Of float tensors with whole numbers, where the tensor is a constant: `full(2.0) < 1` came out true.
Of a tensor with itself, which asks for NaN: `x == x` came out true. Where sizes vary the compiler
takes a sum over that constant for one element, so whole numbers are asked as well.
"""

from __future__ import annotations

import torch
from torch.fx import Node

from .inserter import Inserter

aten, prims = torch.ops.aten, torch.ops.prims

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
    if other is tensor:
        _compare_with_itself(inserter, tensor)
    elif type(other) is int and tensor.meta["val"].dtype.is_floating_point:
        inserter.anchor.args = (tensor, float(other))


def _compare_with_itself(inserter: Inserter, tensor: Node) -> None:
    if not tensor.meta["val"].dtype.is_floating_point:
        tensor = inserter.call(prims.convert_element_type.default, tensor, torch.float32)
    if inserter.anchor.target is aten.ne.Tensor:
        inserter.become(aten.isnan.default, tensor)
    else:
        inserter.become(aten.logical_not.default, inserter.call(aten.isnan.default, tensor))
