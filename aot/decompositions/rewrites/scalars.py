"""Comparisons of float tensors with whole numbers, said with floats.

Where the tensor is a constant, the compiler folds such a comparison wrongly (`full(2.0) < 1` came
out true).
"""

from __future__ import annotations

import torch
from torch.fx import Node

from .inserter import Inserter

aten = torch.ops.aten

TARGETS = (
    aten.eq.Scalar,
    aten.ge.Scalar,
    aten.gt.Scalar,
    aten.le.Scalar,
    aten.lt.Scalar,
    aten.ne.Scalar,
)


def rewrite_comparison(inserter: Inserter) -> None:
    """Turn the number that a float tensor is compared with into a float."""
    tensor, number = inserter.anchor.args
    assert isinstance(tensor, Node)
    if type(number) is int and tensor.meta["val"].dtype.is_floating_point:
        inserter.anchor.args = (tensor, float(number))
