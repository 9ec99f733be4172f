"""One-byte integers: arithmetic in int32, narrowed back.

The compiler represents uint8 as signless bytes and sign-extends them to promote or compare, so that
mixed arithmetic, reductions and sorts are wrong; several operators have no one-byte lowering.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ...compat.pytrees import tree_leaves, tree_map
from ..registry import Decomposition, Family
from ..wrapping import wrapped

aten = torch.ops.aten

FAMILY = Family("narrow integers")

_NARROW = (torch.uint8, torch.int8)

_ORDERING = (
    aten.argmax.default,
    aten.argmin.default,
    aten.argsort.default,
    aten.argsort.stable,
    aten.cummax.default,
    aten.cummin.default,
    aten.sort.default,
    aten.sort.stable,
    aten.topk.default,
)
"""Operators that are wrong on bool tensors too: as a signed bit, true is less than false."""

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
    aten.fill.Scalar,
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
    aten.sqrt.default,
    aten.sub.Scalar,
    aten.sub.Tensor,
    aten.sum.default,
    aten.sum.dim_IntList,
    aten.where.self,
)


_COMPARISONS = (
    aten.eq.Scalar, aten.ge.Scalar, aten.gt.Scalar, aten.le.Scalar, aten.lt.Scalar, aten.ne.Scalar,
)  # fmt: skip
"""Operators that compare with a number, which takes the type of the tensor."""

_BOUNDED = (aten.clamp.default, aten.clamp_max.default, aten.clamp_min.default)
"""Operators of which negative bounds of a uint8 tensor wrap around, too."""

_TRUTH = (aten.any.default, aten.any.dim, aten.all.default, aten.all.dim)
"""Operators whose result is uint8 for uint8, and bool for any other type."""


def _widened(operator: OpOverload, narrow: tuple[torch.dtype, ...]) -> Decomposition:
    def widen(value: Any) -> Any:
        wanted = isinstance(value, Tensor) and value.dtype in narrow
        return value.to(torch.int32) if wanted else value

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        tensors = [x for x in leaves if x.dtype is not torch.bool or torch.bool in narrow]
        asked = kwargs.get("dtype")
        if asked in narrow:
            return operator(*args, **{**kwargs, "dtype": torch.int64}).to(asked)
        if not any(x.dtype in narrow for x in tensors):
            return NotImplemented
        if operator in _COMPARISONS and type(args[1]) is int and args[0].dtype in _NARROW:
            args = (args[0], wrapped(args[1], args[0].dtype))
        if operator in _BOUNDED and args[0].dtype in _NARROW:
            bounds = tree_map(lambda bound: _bound(bound, args[0].dtype), (args[1:], kwargs))
            args, kwargs = (args[0], *bounds[0]), bounds[1]
        wide_args, wide_kwargs = tree_map(widen, (args, kwargs))
        if asked is not None:
            return operator(*wide_args, **wide_kwargs)
        natural = _promoted(tensors)
        if operator in _TRUTH and natural is torch.uint8:
            return operator(*wide_args, **wide_kwargs).to(torch.uint8)
        return tree_map(lambda out: _narrow(out, natural), operator(*wide_args, **wide_kwargs))

    return decomposition


def _promoted(tensors: Sequence[Tensor]) -> torch.dtype:
    """Return the type that operands are promoted to; those without dimensions change the kind only.

    Source: https://docs.pytorch.org/docs/stable/tensor_attributes.html (type promotion)
    """
    whole = [x.dtype for x in tensors if x.dim()] or [x.dtype for x in tensors]
    natural = reduce(torch.promote_types, whole)
    kinds = [x.dtype for x in tensors if not x.dim() and _kind(x.dtype) > _kind(natural)]
    return reduce(torch.promote_types, kinds, natural)


def _kind(dtype: torch.dtype) -> int:
    return (dtype is not torch.bool) + dtype.is_floating_point + 2 * dtype.is_complex


def _bound(bound: Any, dtype: torch.dtype) -> Any:
    return wrapped(bound, dtype) if type(bound) is int else bound


def _narrow(value: Any, natural: torch.dtype) -> Any:
    """Return a result that is int32 because its operands were widened in the type torch gives."""
    widened = isinstance(value, Tensor) and value.dtype is torch.int32
    return value.to(natural) if widened and natural is not torch.int32 else value


_REASON = "narrow integers are sign-extended or refused"

for _operator in _ARITHMETIC:
    FAMILY.enter(_operator, _widened(_operator, _NARROW), reason=_REASON)
for _operator in _ORDERING:
    FAMILY.enter(_operator, _widened(_operator, (*_NARROW, torch.bool)), reason=_REASON)


@FAMILY.decomposes(aten.zero.default, reason="no lowering for one-byte integers")
def zero(x: Tensor) -> Any:
    """`zero` of one-byte integers: a new tensor of zeros."""
    return torch.zeros_like(x) if x.dtype in _NARROW else NotImplemented


@FAMILY.decomposes(aten.arange.start_step, reason="no lowering for one-byte integers")
def arange(start: Any, end: Any, step: Any = 1, *, dtype: Any = None, **kwargs: Any) -> Any:
    """`arange` of one-byte integers, by way of int32."""
    if dtype not in _NARROW:
        return NotImplemented
    wide = torch.arange(start, end, step, dtype=torch.int32, device=kwargs.get("device"))
    return wide.to(dtype)


@FAMILY.converts(reason="floats convert to signed bytes, which saturate at 127")
def to_uint8(x: Tensor, wanted: torch.dtype) -> Any:
    """Convert a float to uint8 by way of int32."""
    if wanted is not torch.uint8 or not x.dtype.is_floating_point:
        return NotImplemented
    return x.to(torch.int32).to(torch.uint8)
