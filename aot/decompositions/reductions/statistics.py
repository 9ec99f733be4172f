"""Reductions over rank 0, over no elements and over all dimensions; fills of dynamic sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload, schema_of
from ...spec.sizes import is_static
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


def _var_of_empty(operator: OpOverload) -> Decomposition:
    names = [argument.name for argument in schema_of(operator).arguments[1:]]

    def decomposition(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not any(is_static(size) and size == 0 for size in x.shape):
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
            _var_of_empty(_operator),
            reason="NaN for empty tensors, for which torch.onnx gives 0",
        )


def _over_all_dims(operator: OpOverload) -> Decomposition:
    def decomposition(x: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if list(dim) or x.dim() == 0:
            return NotImplemented
        return operator(x, list(range(x.dim())), keepdim)

    return decomposition


for _operator in (aten.amax.default, aten.amin.default):
    FAMILY.enter(_operator, _over_all_dims(_operator), reason="torch.onnx requires dimensions")
