"""Data movement in forms that the compiler lowers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ...spec.sizes import is_static
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("movement")

_symbolic: Any = torch  # whose functions of symbolic numbers have no types


@FAMILY.decomposes(aten.roll.default, reason="refused without dims; wrong by the size or more")
def roll(x: Tensor, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Any:
    """`roll`: each dimension by a shift that is normalized to its size."""
    if not dims:
        return x.reshape(-1).roll(shifts, [0]).reshape(x.shape)
    sizes = [x.shape[dim] for dim in dims]
    if all(_is_within(shift, size) for shift, size in zip(shifts, sizes, strict=True)):
        return NotImplemented
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(x, shift, dim)
    return x.clone()


def _is_within(shift: Any, size: Any) -> bool:
    """Return whether a shift is within the size, for all possible sizes."""
    return statically_known_true(-size < shift) and statically_known_true(shift <= size)


def _rolled(x: Tensor, shift: Any, dim: int) -> Tensor:
    size = x.shape[dim]
    first = -shift % (size or 1 if is_static(size) else _symbolic.sym_max(size, 1))
    return torch.cat([x.narrow(dim, first, size - first), x.narrow(dim, 0, first)], dim)


@FAMILY.decomposes(aten.narrow.default, reason="wrong from a negative start")
def narrow(x: Tensor, dim: int, start: Any, length: Any) -> Any:
    """Return a part that starts at a number counted from the front."""
    if not isinstance(start, int) or start >= 0:
        return NotImplemented
    return x.narrow(dim, x.shape[dim] + start, length)


@FAMILY.decomposes(
    aten.unflatten.int, reason="of a negative dimension, a part of 1 is put at a wrong place"
)
def unflatten(x: Tensor, dim: int, sizes: Sequence[Any]) -> Any:
    """Return x with a dimension, counted from the front, made several."""
    return NotImplemented if dim >= 0 else aten.unflatten.int(x, dim + x.dim(), sizes)


@FAMILY.decomposes(aten.unfold.default, reason="no lowering of a single window with a larger step")
def unfold(x: Tensor, dim: int, size: int, step: int) -> Any:
    """Return the first window as the only one."""
    if not x.dim() or not is_static(x.shape[dim]) or size + step <= x.shape[dim]:
        return NotImplemented
    return x.narrow(dim, 0, size).movedim(dim, -1).unsqueeze(dim % x.dim())
