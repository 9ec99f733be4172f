"""Operators on bool tensors, which the compiler takes for one-bit integers or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ..registry import Decomposition, Family

aten = torch.ops.aten

FAMILY = Family("booleans")


def _is_bool(value: Any) -> bool:
    return value.dtype is torch.bool if isinstance(value, Tensor) else isinstance(value, bool)


def true_like(x: Tensor, value: bool = True) -> Tensor:
    """Return a bool scalar tensor, made by a comparison (bool constants do not compile)."""
    return torch.full((), int(value), dtype=torch.int32, device=x.device) != 0


def _bitwise(operator: OpOverload, logical: OpOverload, x: Tensor, y: Any) -> Any:
    if _is_bool(x) and _is_bool(y):
        return logical(x, y if isinstance(y, Tensor) else true_like(x, y))
    dtype = torch.result_type(x, y)
    if isinstance(y, Tensor):
        if x.dtype == y.dtype:
            return NotImplemented
        return operator(x.to(dtype), y.to(dtype))
    return operator(x.to(dtype), torch.full((), y, dtype=dtype, device=x.device))


@FAMILY.decomposes(aten.__and__.Tensor, aten.__and__.Scalar, reason="no lowering under this name")
def and_operator(x: Tensor, y: Any) -> Tensor:
    """Return x & y."""
    return torch.bitwise_and(x, y)


@FAMILY.decomposes(
    aten.bitwise_and.Tensor,
    aten.bitwise_and.Scalar,
    reason="logical on bool; on integers both sides must have one type",
)
def bitwise_and(x: Tensor, y: Any) -> Any:
    """Return x & y by the logical operator for bool, on one integer type otherwise."""
    return _bitwise(aten.bitwise_and.Tensor, aten.logical_and.default, x, y)


@FAMILY.decomposes(aten.__or__.Tensor, aten.__or__.Scalar, reason="no lowering under this name")
def or_operator(x: Tensor, y: Any) -> Tensor:
    """Return x | y."""
    return torch.bitwise_or(x, y)


@FAMILY.decomposes(
    aten.bitwise_or.Tensor,
    aten.bitwise_or.Scalar,
    reason="logical on bool; on integers both sides must have one type",
)
def bitwise_or(x: Tensor, y: Any) -> Any:
    """Return x | y by the logical operator for bool, on one integer type otherwise."""
    return _bitwise(aten.bitwise_or.Tensor, aten.logical_or.default, x, y)


@FAMILY.decomposes(aten.__xor__.Tensor, aten.__xor__.Scalar, reason="no lowering under this name")
def xor_operator(x: Tensor, y: Any) -> Tensor:
    """Return x ^ y."""
    return torch.bitwise_xor(x, y)


@FAMILY.decomposes(
    aten.bitwise_xor.Tensor,
    aten.bitwise_xor.Scalar,
    reason="logical on bool; on integers both sides must have one type",
)
def bitwise_xor(x: Tensor, y: Any) -> Any:
    """Return x ^ y by the logical operator for bool, on one integer type otherwise."""
    return _bitwise(aten.bitwise_xor.Tensor, aten.logical_xor.default, x, y)


def _clamped(operator: OpOverload, logical: OpOverload) -> Decomposition:
    """Return a bound of bool tensors: of two truth values the smaller is both, the larger any."""

    def decomposition(x: Tensor, bound: Any) -> Any:
        if x.dtype is not torch.bool:
            return NotImplemented
        if _is_bool(bound):
            return logical(x, bound if isinstance(bound, Tensor) else true_like(x, bound))
        dtype = torch.result_type(x, bound)
        return operator(x.to(dtype), bound.to(dtype) if isinstance(bound, Tensor) else bound)

    return decomposition


for _operator, _logical in (
    (aten.clamp_max.default, aten.logical_and.default),
    (aten.clamp_max.Tensor, aten.logical_and.default),
    (aten.clamp_min.default, aten.logical_or.default),
    (aten.clamp_min.Tensor, aten.logical_or.default),
):
    FAMILY.enter(_operator, _clamped(_operator, _logical), reason="true is less than false")


@FAMILY.decomposes(aten.masked_fill.Scalar, reason="of a number the last bit is taken: 10 is false")
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Any:
    """Return x with true or false where the mask is true."""
    if not _is_bool(x) or type(value) is bool:
        return NotImplemented
    return torch.masked_fill(x, mask, bool(value))


@FAMILY.decomposes(aten.index_put.default, reason="one-bit integers are added, and 1 + 1 is 0")
def index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Any:
    """Return a bool tensor with truth values added at indices, where 1 + 1 is 1."""
    if x.dtype is not torch.bool or not accumulate:
        return NotImplemented
    count = aten.index_put.default(x.to(torch.int32), indices, values.to(torch.int32), True)
    return count != 0


def _scattered(operator: OpOverload) -> Decomposition:
    """Return a scatter of truth values as one of integers: sums are any, products are all."""

    def decomposition(
        x: Tensor, dim: int, index: Tensor, source: Tensor, *args: Any, **kw: Any
    ) -> Any:
        if x.dtype is not torch.bool:
            return NotImplemented
        x, source = x.to(torch.int32), source.to(torch.int32)
        return operator(x, dim, index, source, *args, **kw) != 0

    return decomposition


for _operator in (aten.scatter_add.default, aten.scatter_reduce.two):
    FAMILY.enter(_operator, _scattered(_operator), reason="true is -1 in one bit, and 1 + 1 is 0")


_CONSTANT = "a constant of one-bit integers does not compile"


def _bool_constant(sizes: Any, value: Any, kwargs: dict[str, Any]) -> Tensor:
    filled = torch.full(sizes, int(bool(value)), dtype=torch.int32, device=kwargs.get("device"))
    return filled != 0


@FAMILY.decomposes(aten.full.default, reason=_CONSTANT)
def full(size: Any, value: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """Return a filled bool tensor by comparing a filled integer tensor with zero."""
    if dtype is torch.bool or (dtype is None and isinstance(value, bool)):
        return _bool_constant(size, value, kwargs)
    return NotImplemented


@FAMILY.decomposes(aten.ones.default, reason=_CONSTANT)
def ones(size: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """Return a bool tensor of true by comparing a filled integer tensor with zero."""
    return _bool_constant(size, True, kwargs) if dtype is torch.bool else NotImplemented


@FAMILY.decomposes(aten.zeros.default, reason=_CONSTANT)
def zeros(size: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """Return a bool tensor of false by comparing a filled integer tensor with zero."""
    return _bool_constant(size, False, kwargs) if dtype is torch.bool else NotImplemented


@FAMILY.decomposes(aten.full_like.default, reason=_CONSTANT)
def full_like(x: Tensor, value: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """Return a filled bool tensor shaped like x by comparing with zero."""
    if (dtype or x.dtype) is torch.bool:
        return _bool_constant(x.shape, value, kwargs)
    return NotImplemented


@FAMILY.decomposes(aten.ones_like.default, reason=_CONSTANT)
def ones_like(x: Tensor, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """Return a bool tensor of true shaped like x by comparing with zero."""
    if (dtype or x.dtype) is torch.bool:
        return _bool_constant(x.shape, True, kwargs)
    return NotImplemented


@FAMILY.decomposes(aten.zeros_like.default, reason=_CONSTANT)
def zeros_like(x: Tensor, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """Return a bool tensor of false shaped like x by comparing with zero."""
    if (dtype or x.dtype) is torch.bool:
        return _bool_constant(x.shape, False, kwargs)
    return NotImplemented
