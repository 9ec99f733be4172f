"""Bool tensors: logical forms of operators that the compiler lowers to one-bit integers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ..registry import Decomposition, Family

aten = torch.ops.aten

FAMILY = Family("bool")


def _is_bool(value: Any) -> bool:
    return value.dtype is torch.bool if isinstance(value, Tensor) else isinstance(value, bool)


def true_like(x: Tensor, value: bool = True) -> Tensor:
    """Return a bool tensor of rank 0, as a comparison (bool constants do not compile)."""
    return torch.full((), int(value), dtype=torch.int32, device=x.device) != 0


def _bitwise(operator: OpOverload, logical: OpOverload, x: Tensor, y: Any) -> Any:
    """Return a logical operator on bool, and a bitwise one on operands of one integer type."""
    if _is_bool(x) and _is_bool(y):
        return logical(x, y if isinstance(y, Tensor) else true_like(x, y))
    dtype = torch.result_type(x, y)
    if isinstance(y, Tensor):
        if x.dtype == y.dtype:
            return NotImplemented
        return operator(x.to(dtype), y.to(dtype))
    return operator(x.to(dtype), torch.full((), y, dtype=dtype, device=x.device))


for _named, _packet, _logical_packet in (
    (aten.__and__, aten.bitwise_and, aten.logical_and),
    (aten.__or__, aten.bitwise_or, aten.logical_or),
    (aten.__xor__, aten.bitwise_xor, aten.logical_xor),
):
    for _overload in ("Tensor", "Scalar"):
        FAMILY.enter(getattr(_named, _overload), _packet, reason="no lowering under this name")
        FAMILY.enter(
            getattr(_packet, _overload),
            partial(_bitwise, _packet.Tensor, _logical_packet.default),
            reason="logical on bool; integer operands must have one type",
        )


def _clamped(operator: OpOverload, logical: OpOverload) -> Decomposition:
    """Return a clamp of bool tensors: their minimum is logical and, their maximum logical or."""

    def decomposition(x: Tensor, bound: Any) -> Any:
        if x.dtype is not torch.bool:
            return NotImplemented
        if _is_bool(bound):
            return logical(x, bound if isinstance(bound, Tensor) else true_like(x, bound))
        dtype = torch.result_type(x, bound)
        return operator(x.to(dtype), bound.to(dtype) if isinstance(bound, Tensor) else bound)

    return decomposition


for _clamp, _combination in (
    (aten.clamp_max.default, aten.logical_and.default),
    (aten.clamp_max.Tensor, aten.logical_and.default),
    (aten.clamp_min.default, aten.logical_or.default),
    (aten.clamp_min.Tensor, aten.logical_or.default),
):
    FAMILY.enter(
        _clamp,
        _clamped(_clamp, _combination),
        reason="a one-bit true is negative, so true compares less than false",
    )


@FAMILY.decomposes(
    aten.masked_fill.Scalar, reason="the fill value is truncated to its last bit: 10 becomes false"
)
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Any:
    """`masked_fill.Scalar` of bool tensors: the value is converted to bool first."""
    if not _is_bool(x) or type(value) is bool:
        return NotImplemented
    return torch.masked_fill(x, mask, bool(value))


@FAMILY.decomposes(aten.index_put.default, reason="sums of one-bit integers wrap: 1 + 1 is 0")
def index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Any:
    """`index_put` that accumulates into a bool tensor: logical or at the indices."""
    if x.dtype is not torch.bool or not accumulate:
        return NotImplemented
    count = aten.index_put.default(x.to(torch.int32), indices, values.to(torch.int32), True)
    return count != 0


def _scattered(operator: OpOverload) -> Decomposition:
    """Return a scatter-reduce of bool tensors, computed in int32 and compared with zero."""

    def decomposition(
        x: Tensor, dim: int, index: Tensor, source: Tensor, *args: Any, **kw: Any
    ) -> Any:
        if x.dtype is not torch.bool:
            return NotImplemented
        x, source = x.to(torch.int32), source.to(torch.int32)
        return operator(x, dim, index, source, *args, **kw) != 0

    return decomposition


for _operator in (aten.scatter_add.default, aten.scatter_reduce.two):
    FAMILY.enter(
        _operator,
        _scattered(_operator),
        reason="one-bit integers: true is -1, and 1 + 1 wraps to 0",
    )


_CONSTANT = "constants of one-bit integers do not compile"


def _bool_constant(sizes: Any, value: Any, kwargs: dict[str, Any]) -> Tensor:
    filled = torch.full(sizes, int(bool(value)), dtype=torch.int32, device=kwargs.get("device"))
    return filled != 0


@FAMILY.decomposes(aten.full.default, reason=_CONSTANT)
def full(size: Any, value: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """`full` of bool: a comparison of a filled integer tensor with zero."""
    if dtype is torch.bool or (dtype is None and isinstance(value, bool)):
        return _bool_constant(size, value, kwargs)
    return NotImplemented


@FAMILY.decomposes(aten.ones.default, reason=_CONSTANT)
def ones(size: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """`ones` of bool: a comparison of a filled integer tensor with zero."""
    return _bool_constant(size, True, kwargs) if dtype is torch.bool else NotImplemented


@FAMILY.decomposes(aten.zeros.default, reason=_CONSTANT)
def zeros(size: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """`zeros` of bool: a comparison of a filled integer tensor with zero."""
    return _bool_constant(size, False, kwargs) if dtype is torch.bool else NotImplemented


@FAMILY.decomposes(aten.full_like.default, reason=_CONSTANT)
def full_like(x: Tensor, value: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """`full_like` of bool: a comparison of a filled integer tensor with zero."""
    if (dtype or x.dtype) is torch.bool:
        return _bool_constant(x.shape, value, kwargs)
    return NotImplemented


@FAMILY.decomposes(aten.ones_like.default, reason=_CONSTANT)
def ones_like(x: Tensor, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """`ones_like` of bool: a comparison of a filled integer tensor with zero."""
    if (dtype or x.dtype) is torch.bool:
        return _bool_constant(x.shape, True, kwargs)
    return NotImplemented


@FAMILY.decomposes(aten.zeros_like.default, reason=_CONSTANT)
def zeros_like(x: Tensor, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """`zeros_like` of bool: a comparison of a filled integer tensor with zero."""
    if (dtype or x.dtype) is torch.bool:
        return _bool_constant(x.shape, False, kwargs)
    return NotImplemented
