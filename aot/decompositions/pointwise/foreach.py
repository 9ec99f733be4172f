"""Operators on lists of tensors, as optimizers use them: one operator for each tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload, foreach_operators, schema_of
from ..registry import Family

FAMILY = Family("lists of tensors")


def _copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return source.to(x.dtype).expand(x.shape).clone()


def _weighted(function: Callable[..., Tensor]) -> Callable[..., Any]:
    """Return `addcmul` or `addcdiv` with a weight that may be a tensor."""

    def apply(x: Tensor, first: Tensor, second: Tensor, weight: Any = 1) -> Any:
        if isinstance(weight, Tensor):
            return x + weight.to(x.dtype) * function(torch.zeros_like(x), first, second)
        return function(x, first, second, value=weight)

    return apply


def _norm(x: Tensor, order: Any = 2, dtype: torch.dtype | None = None) -> Any:
    return torch.linalg.vector_norm(x, order, dtype=dtype)


def _sum_of_powers(x: Tensor, order: Any = 2, dtype: torch.dtype | None = None) -> Any:
    return x.to(dtype or x.dtype).abs().pow(order).sum()


def _maximum(x: Tensor, other: Any) -> Tensor:
    return torch.maximum(x, other) if isinstance(other, Tensor) else torch.clamp_min(x, other)


def _minimum(x: Tensor, other: Any) -> Tensor:
    return torch.minimum(x, other) if isinstance(other, Tensor) else torch.clamp_max(x, other)


_SINGLE: dict[str, Callable[..., Any]] = {
    "addcdiv": _weighted(torch.addcdiv),
    "addcmul": _weighted(torch.addcmul),
    "copy": _copy,
    "maximum": _maximum,
    "minimum": _minimum,
    "norm": _norm,
    "powsum": _sum_of_powers,
    "zero": torch.zeros_like,
}
"""The operators on one tensor that are not torch's function of the same name."""


def _for_each(operator: OpOverload, single: Callable[..., Tensor]) -> Callable[..., list[Tensor]]:
    """Return the decomposition of an operator on lists.

    Args:
        operator: The operator.
        single: Computes it for one tensor; what is not a list is the same for all.
    """
    schema = schema_of(operator)
    lists = {a.name for a in schema.arguments if str(a.type).startswith("List")}
    names = [argument.name for argument in schema.arguments if not argument.kwarg_only]
    if schema.overload_name == "Tensor" and schema.name.endswith(("addcdiv", "addcmul")):
        lists.add("scalars")  # a tensor of one weight for each

    def decomposition(*args: Any, **kwargs: Any) -> list[Tensor]:
        given = dict(zip(names, args, strict=False)) | kwargs
        count = max(len(given[name]) for name in lists)
        results = []
        for index in range(count):
            one = {name: v[index] if name in lists else v for name, v in given.items()}
            ordered = [one.pop(name) for name in names if name in one]
            results.append(single(*ordered, **one))
        return results

    return decomposition


for _name, _operator in foreach_operators():
    _single = _SINGLE.get(_name, getattr(torch, _name, None))
    if _single is not None:
        FAMILY.enter(_operator, _for_each(_operator, _single), reason="no lowering")
