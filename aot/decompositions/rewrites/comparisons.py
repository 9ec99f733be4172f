"""Comparisons that the compiler folds wrongly, in equivalent forms.

A constant float tensor compared with an integer: `full(2.0) < 1` was folded to true. A float tensor
compared with itself, as a test for NaN: `x == x` was folded to true. A bool among numbers is read
as a signed integer of one bit, so that `true > -1` was false. An integer that the tensor's
type cannot hold wraps around in torch: `uint8 > -1` compares with 255.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from ..wrapping import wrapped
from .inserter import Inserter

aten = torch.ops.aten
prims = torch.ops.prims

TARGETS = (
    aten.eq.Tensor,
    aten.ge.Tensor,
    aten.gt.Tensor,
    aten.le.Tensor,
    aten.lt.Tensor,
    aten.ne.Tensor,
    aten.eq.Scalar,
    aten.ge.Scalar,
    aten.gt.Scalar,
    aten.le.Scalar,
    aten.lt.Scalar,
    aten.ne.Scalar,
)


def rewrite_comparison(inserter: Inserter) -> None:
    """Compare numbers of one type; test for NaN by `isnan`."""
    tensor, other = inserter.anchor.args
    assert isinstance(tensor, Node)
    dtype = tensor.meta["val"].dtype
    if dtype is torch.bool or _dtype_of(other) is torch.bool:
        inserter.anchor.args = (_number(inserter, tensor, other), _number(inserter, other, tensor))
    elif type(other) is int and dtype.is_floating_point:
        inserter.anchor.args = (tensor, float(other))
    elif type(other) is int and dtype in _INTEGERS:
        inserter.anchor.args = (tensor, wrapped(other, dtype))
    elif not dtype.is_floating_point or other is not tensor:
        return
    elif inserter.anchor.target is aten.ne.Tensor:
        inserter.become(aten.isnan.default, tensor)
    elif inserter.anchor.target in (aten.eq.Tensor, aten.ge.Tensor, aten.le.Tensor):
        inserter.become(aten.logical_not.default, inserter.call(aten.isnan.default, tensor))


_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32)


def _dtype_of(operand: Any) -> torch.dtype | None:
    value = operand.meta["val"] if isinstance(operand, Node) else None
    return value.dtype if isinstance(value, torch.Tensor) else None


def _number(inserter: Inserter, operand: Any, other: Any) -> Any:
    """Return an operand as an integer where it is a bool and the other is none."""
    if _dtype_of(operand) is not torch.bool or _dtype_of(other) is torch.bool:
        return operand
    if isinstance(other, bool):
        return operand
    return inserter.call(prims.convert_element_type.default, operand, torch.int64)
