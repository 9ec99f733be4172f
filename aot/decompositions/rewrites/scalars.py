"""Operators along a dimension, of tensors without one: computed on a tensor of one element.

torch lets a tensor without dimensions be taken along dimension 0, and a vector be gathered from at
an index without dimensions. IREE's torch dialect (3.13) does not: softmax compiles without end, the
variance crashes the compiler, gathers and scatters are refused.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from .inserter import Inserter

aten = torch.ops.aten

TARGETS = (
    aten.softmax.int, aten._softmax.default, aten.log_softmax.int, aten._log_softmax.default,
    aten.gather.default, aten.scatter.src, aten.scatter.value, aten.scatter.reduce,
    aten.scatter.value_reduce, aten.scatter_add.default, aten.scatter_reduce.two,
    aten.var.correction, aten.var.dim, aten.std.correction, aten.std.dim,
    aten.var_mean.correction, aten.var_mean.dim, aten.std_mean.correction, aten.std_mean.dim,
    aten.flip.default,
)  # fmt: skip


def rewrite_scalar(inserter: Inserter) -> None:
    """Give the arguments of an operator a dimension of one element, and take it from the result."""
    anchor = inserter.anchor
    if not any(map(_is_scalar, anchor.args)):
        return
    args = [_with_dimension(inserter, argument) for argument in anchor.args]
    if args[1:2] == [-1]:  # the dimension: scatters along the last one crash the compiler
        args[1] = 0
    result = inserter.call(anchor.target, *args, **anchor.kwargs)  # type: ignore[arg-type]
    value = result.meta["val"]
    if isinstance(value, torch.Tensor) and value.dim() > anchor.meta["val"].dim():
        inserter.become(aten.view.default, result, [])
    else:  # a reduction, whose results have no dimensions, or a scatter to a vector
        anchor.args = tuple(args)


def _is_scalar(argument: Any) -> bool:
    value = argument.meta.get("val") if isinstance(argument, Node) else None
    return isinstance(value, torch.Tensor) and value.dim() == 0


def _with_dimension(inserter: Inserter, argument: Any) -> Any:
    if not _is_scalar(argument):
        return argument
    return inserter.call(aten.view.default, argument, [1])
