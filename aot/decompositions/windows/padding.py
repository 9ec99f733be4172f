"""Padding: constant padding with negative amounts, and the other modes by index_select."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ...spec.sizes import is_static
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("padding")

_Index = Callable[[Tensor, Any], Any]


def _cuts(pad: Sequence[Any]) -> bool:
    return any(is_static(amount) and amount < 0 for amount in pad)


def _constant(x: Tensor, pad: Sequence[Any], value: Any) -> Any:
    return padded_or_cut(x, pad, 0 if value is None else value) if _cuts(pad) else NotImplemented


def padded_or_cut(x: Tensor, pad: Sequence[Any], value: Any) -> Tensor:
    """Return a tensor cropped where padding is negative, then padded by the positive amounts.

    Args:
        x: The tensor.
        pad: Two amounts for each dimension, the last dimension first, as for `F.pad`.
        value: The value of the padding.
    """
    for position in range(0, len(pad), 2):
        dim = x.dim() - 1 - position // 2
        before, after = (max(0, -amount) for amount in pad[position : position + 2])
        if before or after:
            x = x.narrow(dim, before, x.shape[dim] - before - after)
    positive = [max(0, amount) for amount in pad]
    if not any(positive):
        return x.clone()
    if all(is_static(size) for size in x.shape):
        return torch.constant_pad_nd(x, positive, value)
    for position in range(0, len(positive), 2):  # torch's kernel would specialise the sizes
        dim = x.dim() - 1 - position // 2
        before, after = (
            x.new_full((*x.shape[:dim], amount, *x.shape[dim + 1 :]), value)
            for amount in positive[position : position + 2]
        )
        x = torch.cat([before, x, after], dim)
    return x


def _reflected(index: Tensor, size: Any) -> Any:
    return (size - 1) - ((size - 1) - index.abs()).abs()


def _replicated(index: Tensor, size: Any) -> Any:
    return index.clamp(0, size - 1)


def _wrapped(index: Tensor, size: Any) -> Tensor:
    return torch.remainder(index, size)


_MODES: dict[str, _Index] = {
    "reflect": _reflected,
    "replicate": _replicated,
    "circular": _wrapped,
}


def _by_index(x: Tensor, pad: Sequence[Any], source: _Index) -> Tensor:
    for position in range(0, len(pad), 2):
        before, after = pad[position : position + 2]
        if is_static(before) and is_static(after) and before == after == 0:
            continue
        dim = x.dim() - 1 - position // 2
        size = x.shape[dim]
        index = torch.arange(size + before + after, device=x.device) - before
        x = torch.index_select(x, dim, source(index, size))
    return x


@FAMILY.decomposes(
    aten.pad.default, reason="wrong results for negative amounts; reflect and circular fail"
)
def pad(x: Tensor, amounts: Sequence[Any], mode: str = "constant", value: Any = None) -> Any:
    """`pad`: padding in any mode."""
    if mode == "constant":
        return _constant(x, amounts, value)
    if mode == "circular" and _cuts(amounts):  # the cropped tensor is what wraps
        cut = torch.constant_pad_nd(x, [min(0, amount) for amount in amounts])
        return _by_index(cut, [max(0, amount) for amount in amounts], _wrapped)
    return _by_index(x, amounts, _MODES[mode])


@FAMILY.decomposes(aten.constant_pad_nd.default, reason="wrong results for negative amounts")
def constant_pad_nd(x: Tensor, amounts: Sequence[Any], value: Any = 0) -> Any:
    """`constant_pad_nd` with negative amounts."""
    return _constant(x, amounts, value)


@FAMILY.decomposes(
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad3d.default,
    reason="the lowering fails on small sizes",
)
def reflection_pad(x: Tensor, amounts: Sequence[Any]) -> Tensor:
    """`reflection_pad`, by index_select."""
    return _by_index(x, amounts, _reflected)


@FAMILY.decomposes(
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.replication_pad3d.default,
    reason="the lowering fails on negative amounts",
)
def replication_pad(x: Tensor, amounts: Sequence[Any]) -> Any:
    """`replication_pad` with negative amounts, by index_select."""
    return _by_index(x, amounts, _replicated) if _cuts(amounts) else NotImplemented
