"""Reductions over rank 0, over no elements and over all dimensions; fills of dynamic sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload, schema_of
from ...compat.symbolic import bound_sympy
from ...spec.sizes import is_static
from ..real_types import in_single
from ..registry import Decomposition, Family

aten = torch.ops.aten

FAMILY = Family("reductions")


def _lift_rank0(operator: OpOverload) -> Decomposition:
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
    FAMILY.enter(_operator, _lift_rank0(_operator), reason="rank 0 is refused")


def _filled(value: int) -> Decomposition:
    """Return the decomposition of a constant of dynamic sizes to `full`."""

    def decomposition(size: Sequence[Any], *, dtype: Any = None, **kwargs: Any) -> Any:
        if all(is_static(extent) for extent in size):
            return NotImplemented
        dtype = dtype or torch.get_default_dtype()
        return torch.full(list(size), value, dtype=dtype, device=kwargs.get("device"))

    return decomposition


def _new_filled(value: int) -> Decomposition:
    fill = _filled(value)

    def decomposition(x: Tensor, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Any:
        return fill(size, dtype=dtype or x.dtype, device=x.device)

    return decomposition


for _operator, _function in (
    (aten.ones.default, _filled(1)),
    (aten.zeros.default, _filled(0)),
    (aten.new_ones.default, _new_filled(1)),
    (aten.new_zeros.default, _new_filled(0)),
):
    FAMILY.enter(
        _operator,
        _function,
        reason="with dynamic sizes, its softmax or cumulative sum does not compile",
    )


def _least(size: Any) -> Any:
    """Return the least value of a size; 0 for 2, below which torch may trace no size."""
    if is_static(size):
        return size
    least = bound_sympy(size.node.expr, size.node.shape_env.var_to_range).lower
    return least if least > 2 else 0


def _of_few(operator: OpOverload) -> Decomposition:
    """Return the decomposition of a variance or standard deviation of possibly few elements.

    The sum of squares is divided by max(0, n - correction).
    """
    names = [argument.name for argument in schema_of(operator).arguments[1:]]
    results = len(schema_of(operator).returns)
    packet: Any = operator.overloadpacket
    is_std = packet in (aten.std, aten.std_mean)

    def decomposition(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        dims = list(given.get("dim") or range(x.dim()))
        keepdim = bool(given.get("keepdim"))
        correction = given.get("correction", given.get("unbiased"))
        correction = 1 if correction is None else correction
        count = math.prod(x.shape[dim] for dim in dims) if x.dim() else 1
        if any(is_static(size) and size == 0 for size in x.shape):
            shaped = torch.sum(x, dims, keepdim=keepdim)
            result = torch.full_like(shaped, math.nan)
            return (result, result) if results == 2 else result
        if x.dtype.is_complex or _least(count) >= correction:
            return NotImplemented
        if is_static(count):
            return packet.correction(x, dims, correction=count, keepdim=keepdim)
        variance = aten.var.correction(in_single(x), dims, correction=0, keepdim=keepdim)
        number = torch.full((), count, dtype=variance.dtype, device=x.device)
        result = variance * (number / (number - correction).clamp(min=0))
        result = (torch.sqrt(result) if is_std else result).to(x.dtype)
        return (result, torch.mean(x, dims, keepdim=keepdim)) if results == 2 else result

    return decomposition


for _packet in (aten.std, aten.std_mean, aten.var, aten.var_mean):
    for _operator in (_packet.default, _packet.dim, _packet.correction):
        FAMILY.enter(
            _operator,
            _of_few(_operator),
            reason="negative with a correction above the count; 0 by torch.onnx for no elements",
        )


def _over_all_dims(operator: OpOverload) -> Decomposition:
    def decomposition(x: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if list(dim) or x.dim() == 0:
            return NotImplemented
        return operator(x, list(range(x.dim())), keepdim)

    return decomposition


for _operator in (aten.amax.default, aten.amin.default):
    FAMILY.enter(_operator, _over_all_dims(_operator), reason="torch.onnx requires dimensions")
