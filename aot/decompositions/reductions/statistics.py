"""Reductions of tensors of rank 0 and of constants; scatters counted from the last dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload, schema_of
from ..pointwise.elementary import ends_of
from ..registry import Decomposition, Family

aten = torch.ops.aten

FAMILY = Family("reductions")


def _of_rank_zero(operator: OpOverload) -> Decomposition:
    def decomposition(x: Tensor, dim: Any = None, *_: Any, **kwargs: Any) -> Any:
        if x.dim() or (dim is None and operator not in (aten.argmax.default, aten.argmin.default)):
            return NotImplemented
        kwargs.pop("keepdim", None)
        return operator(x[None], [0] if isinstance(dim, (list, tuple)) else 0, **kwargs)

    return decomposition


for _operator in (
    aten.all.dim,
    aten.amax.default,
    aten.amin.default,
    aten.any.dim,
    aten.argmax.default,
    aten.argmin.default,
    aten.logsumexp.default,
    aten.prod.dim_int,
):
    FAMILY.enter(_operator, _of_rank_zero(_operator), reason="rank 0 is refused")


def _from_the_front(operator: OpOverload) -> Decomposition:
    def decomposition(x: Tensor, dim: int, *args: Any, **kwargs: Any) -> Any:
        if dim >= 0 or not x.dim():
            return NotImplemented
        return operator(x, dim + x.dim(), *args, **kwargs)

    return decomposition


for _operator in (
    aten.scatter.src,
    aten.scatter.value,
    aten.scatter_add.default,
    aten.scatter_reduce.two,
):
    FAMILY.enter(_operator, _from_the_front(_operator), reason="negative dimensions crash it")


@FAMILY.decomposes(aten.cumsum.default, reason="rank 0 is refused")
def cumsum_of_one(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """Return a tensor of rank 0 itself, whole numbers as int64."""
    if x.dim():
        return NotImplemented
    whole = not (x.dtype.is_floating_point or x.dtype.is_complex)
    return x.to(dtype or (torch.int64 if whole else x.dtype)).clone()


def _neutral(reduce: str, dtype: torch.dtype) -> float | None:
    """Return the number with which a reduction gives the other number."""
    if reduce in ("sum", "prod"):
        return int(reduce == "prod")
    least, largest = ends_of(dtype)
    return {"amax": least, "amin": largest}.get(reduce)


@FAMILY.decomposes(aten.scatter_reduce.two, reason="torch.onnx takes a mean for an assignment")
def scatter_mean(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """Return x with the mean of elements at indices, as sums by counts."""
    if reduce != "mean" or x.dtype is torch.bool or not x.dim():
        return NotImplemented
    one = torch.ones_like(source)
    count = torch.zeros_like(x).scatter_add(dim, index, one)
    kept = x if include_self else torch.where(count > 0, torch.zeros_like(x), x)
    total = kept.scatter_add(dim, index, source)
    count = count + 1 if include_self else count.clamp(min=1)
    rounding = None if x.dtype.is_floating_point or x.dtype.is_complex else "floor"
    return torch.div(total, count, rounding_mode=rounding)


@FAMILY.decomposes(
    aten.scatter_reduce.two, reason="does not compile without itself where sizes vary"
)
def scatter_without_itself(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """Return a scatter over x in which the elements that it reaches are neutral."""
    sizes = (*x.shape, *index.shape)
    if include_self or not x.dim() or all(isinstance(size, int) for size in sizes):
        return NotImplemented
    neutral = None if x.dtype is torch.bool else _neutral(reduce, x.dtype)
    if neutral is None:
        return NotImplemented
    ones = torch.ones(index.shape, dtype=torch.int32, device=x.device)
    counts = torch.zeros(x.shape, dtype=torch.int32, device=x.device)
    reached = counts.scatter_add(dim, index, ones) > 0
    kept = x.masked_fill(reached, neutral)
    return torch.scatter_reduce(kept, dim, index, source, reduce)


def _filled(value: int) -> Decomposition:
    """Return the filling of a tensor whose sizes vary by the operator that takes the number."""

    def decomposition(size: Sequence[Any], *, dtype: Any = None, **kwargs: Any) -> Any:
        if all(isinstance(extent, int) for extent in size):
            return NotImplemented
        dtype = dtype or torch.get_default_dtype()
        return torch.full(list(size), value, dtype=dtype, device=kwargs.get("device"))

    return decomposition


def _newly_filled(value: int) -> Decomposition:
    fill = _filled(value)

    def decomposition(x: Tensor, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Any:
        return fill(size, dtype=dtype or x.dtype, device=x.device)

    return decomposition


for _operator, _function in (
    (aten.ones.default, _filled(1)),
    (aten.zeros.default, _filled(0)),
    (aten.new_ones.default, _newly_filled(1)),
    (aten.new_zeros.default, _newly_filled(0)),
):
    FAMILY.enter(
        _operator,
        _function,
        reason="a softmax or a running sum of it does not compile where sizes vary",
    )


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


@FAMILY.decomposes(aten.scatter.reduce, reason="no lowering")
def scatter_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, *, reduce: str) -> Tensor:
    """Return x with elements added to it, or multiplied with it, at indices."""
    return torch.scatter_reduce(x, dim, index, source, _REDUCTIONS[reduce])


@FAMILY.decomposes(aten.scatter.value_reduce, reason="no lowering")
def scatter_reduce_value(x: Tensor, dim: int, index: Tensor, value: Any, *, reduce: str) -> Tensor:
    """Return x with a number added to it, or multiplied with it, at indices."""
    source = torch.full(index.shape, value, dtype=x.dtype, device=x.device)
    return torch.scatter_reduce(x, dim, index, source, _REDUCTIONS[reduce])


def _spread_of_none(operator: OpOverload) -> Decomposition:
    names = [argument.name for argument in schema_of(operator).arguments[1:]]

    def decomposition(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(size, int) and size == 0 for size in x.shape):
            return NotImplemented
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        dims = given.get("dim") or range(x.dim())
        shaped = torch.sum(x, list(dims), keepdim=bool(given.get("keepdim")))
        result = torch.full_like(shaped, math.nan)
        return (result, result) if len(schema_of(operator).returns) == 2 else result

    return decomposition


for _packet in (aten.std, aten.std_mean, aten.var, aten.var_mean):
    for _operator in (_packet.default, _packet.dim, _packet.correction):
        FAMILY.enter(
            _operator,
            _spread_of_none(_operator),
            reason="of no elements it is NaN; torch.onnx gives 0",
        )


def _of_all(operator: OpOverload) -> Decomposition:
    def decomposition(x: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if list(dim) or x.dim() == 0:
            return NotImplemented
        return operator(x, list(range(x.dim())), keepdim)

    return decomposition


for _operator in (aten.amax.default, aten.amin.default):
    FAMILY.enter(_operator, _of_all(_operator), reason="torch.onnx wants dimensions")
