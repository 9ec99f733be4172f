"""Sizes of slices of dynamic dimensions, in one form for each size.

torch (2.13) gives `x[1:]` the size `max(0, n - min(1, n))`, but `x[:-1]` the size `max(0, n - 1)`:
they are equal, which it cannot tell, so that `x[1:] - x[:-1]` would be a constraint on n.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ..compat.fake_tensors import FakeTensor, implemented, op_implementations_dict
from ..spec.sizes import is_static

_SLICE = torch.ops.aten.slice.Tensor
_torch_slice: Callable[..., FakeTensor] = op_implementations_dict[_SLICE]


def plain_slice_sizes() -> AbstractContextManager[Any]:
    """Give slices of dynamic dimensions their plain sizes in traces, within a `with` block."""
    return implemented(_SLICE, _slice)


def slice_size(size: Any, start: int, end: int | None, step: int) -> Any:
    """Return the size of a slice of a dimension of dynamic size.

    Args:
        size: The size of the dimension.
        start: Where the slice starts; negative: from the end.
        end: Where it ends; negative: from the end; None: at the end.
        step: The distance of two elements.

    Example:
        >>> slice_size(7, 1, -2, 3), slice_size(7, -3, None, 1), slice_size(1, 2, None, 1)
        (2, 3, 0)
    """
    if end is not None and 0 <= end <= start:
        return 0
    if end is None or end >= sys.maxsize:
        count = _least(-start, size) if start < 0 else _not_negative(size - start)
    elif start < 0:
        last = size + end if end < 0 else _least(end, size)
        count = _not_negative(last - _not_negative(size + start))
    else:  # where the slice starts beyond the end, the difference is negative
        count = _not_negative((size + end if end < 0 else _least(end, size)) - start)
    return (count + step - 1) // step


def _least(number: int, size: Any) -> Any:
    if statically_known_true(size >= number):
        return number
    return torch.sym_min(number, size)  # type: ignore[no-untyped-call]


def _not_negative(size: Any) -> Any:
    if statically_known_true(size >= 0):
        return size
    return torch.sym_max(size, 0)  # type: ignore[no-untyped-call]


def _slice(
    mode: Any, operator: Any, x: FakeTensor, dim: int = 0, start: Any = None, end: Any = None,
    step: Any = 1,
) -> FakeTensor:  # fmt: skip
    found = _torch_slice(mode, operator, x, dim, start, end, step)
    first = 0 if start is None else start
    known = is_static(first) and (end is None or is_static(end)) and is_static(step)
    if not known or is_static(x.shape[dim]):
        return found
    sizes = list(found.shape)
    sizes[dim] = slice_size(x.shape[dim], first, end, step)
    return x.as_strided(sizes, found.stride(), found.storage_offset())  # type: ignore[return-value]
