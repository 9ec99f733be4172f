"""Arithmetic on one-byte tensors, done in int32 and narrowed back.

The compiler carries uint8 as signless bytes and sign-extends it where it promotes or compares, so
that mixed arithmetic, reductions and sorting are wrong; several operators have no one-byte form.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves, tree_map

from .family import Decomposition, Family

aten = torch.ops.aten

FAMILY = Family("narrow integers")

_NARROW = (torch.uint8, torch.int8)

_ARITHMETIC = (
    aten.abs.default,
    aten.add.Scalar,
    aten.add.Tensor,
    aten.any.default,
    aten.any.dim,
    aten.all.default,
    aten.all.dim,
    aten.addmm.default,
    aten.amax.default,
    aten.amin.default,
    aten.argmax.default,
    aten.argmin.default,
    aten.argsort.default,
    aten.bmm.default,
    aten.cat.default,
    aten.clamp.default,
    aten.clamp.Tensor,
    aten.clamp_max.default,
    aten.clamp_min.default,
    aten.cumprod.default,
    aten.cumsum.default,
    aten.div.Scalar,
    aten.div.Scalar_mode,
    aten.div.Tensor,
    aten.div.Tensor_mode,
    aten.dot.default,
    aten.eq.Scalar,
    aten.eq.Tensor,
    aten.exp.default,
    aten.floor_divide.default,
    aten.fmod.Scalar,
    aten.fmod.Tensor,
    aten.ge.Scalar,
    aten.ge.Tensor,
    aten.gt.Scalar,
    aten.gt.Tensor,
    aten.le.Scalar,
    aten.le.Tensor,
    aten.log.default,
    aten.lt.Scalar,
    aten.lt.Tensor,
    aten.matmul.default,
    aten.max.default,
    aten.max.dim,
    aten.maximum.default,
    aten.mean.dim,
    aten.min.default,
    aten.min.dim,
    aten.minimum.default,
    aten.mm.default,
    aten.mul.Scalar,
    aten.mul.Tensor,
    aten.mv.default,
    aten.ne.Scalar,
    aten.ne.Tensor,
    aten.neg.default,
    aten.pow.Scalar,
    aten.pow.Tensor_Scalar,
    aten.pow.Tensor_Tensor,
    aten.prod.default,
    aten.prod.dim_int,
    aten.remainder.Scalar,
    aten.remainder.Tensor,
    aten.rsub.Scalar,
    aten.sigmoid.default,
    aten.sign.default,
    aten.sort.default,
    aten.sort.stable,
    aten.sqrt.default,
    aten.sub.Scalar,
    aten.sub.Tensor,
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.topk.default,
    aten.where.self,
)


def _widened(operator: OpOverload) -> Decomposition:
    def decomposition(*args: Any, **kwargs: Any) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        numbers = [tensor.dtype for tensor in tensors if tensor.dtype is not torch.bool]
        if not any(dtype in _NARROW for dtype in numbers):
            return NotImplemented
        wide_args, wide_kwargs = tree_map(_widen, (args, kwargs))
        natural = reduce(torch.promote_types, numbers)
        return tree_map(lambda out: _narrow(out, natural), operator(*wide_args, **wide_kwargs))

    return decomposition


def _widen(value: Any) -> Any:
    narrow = isinstance(value, Tensor) and value.dtype in _NARROW
    return value.to(torch.int32) if narrow else value


def _narrow(value: Any, natural: torch.dtype) -> Any:
    """Cast a result that is int32 only because we widened to the type that torch would give."""
    widened = isinstance(value, Tensor) and value.dtype is torch.int32
    return value.to(natural) if widened and natural is not torch.int32 else value


for _operator in _ARITHMETIC:
    FAMILY.enter(
        _operator, _widened(_operator), reason="one-byte integers are sign-extended or refused"
    )
