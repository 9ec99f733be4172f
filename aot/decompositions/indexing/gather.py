"""Strided views, slice scatters, embedding bags and uninitialised tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..broadcasting import along
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("gather")

_NO_LOWERING = "no lowering"


def _strided_index(x: Tensor, size: Sequence[Any], stride: Sequence[Any], offset: Any) -> Tensor:
    """Return the storage offsets of the elements of a strided view."""
    index = torch.full((), offset or 0, dtype=torch.int64, device=x.device)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        places = torch.arange(count, device=x.device) * step
        index = index + along(places, axis, len(size))
    return index.expand(size) if len(size) else index


def _check_layout(x: Tensor) -> None:
    """Refuse a tensor whose memory a decomposition has laid out in another way than torch."""
    if not x.is_contiguous():
        raise NotImplementedError(
            "of a tensor that does not lie row after row; call contiguous() on it first"
        )


@FAMILY.decomposes(aten.as_strided.default, aten.as_strided_copy.default, reason=_NO_LOWERING)
def as_strided(x: Tensor, size: Sequence[Any], stride: Sequence[Any], offset: Any = None) -> Tensor:
    """`as_strided` of a contiguous tensor, by index_select."""
    _check_layout(x)
    index = _strided_index(x, size, stride, offset)
    return x.reshape(-1).index_select(0, index.reshape(-1)).reshape(list(size))


@FAMILY.decomposes(aten.as_strided_scatter.default, reason=_NO_LOWERING)
def as_strided_scatter(
    x: Tensor, source: Tensor, size: Sequence[Any], stride: Sequence[Any], offset: Any = None
) -> Any:
    """`as_strided_scatter`: x with the elements of a strided view replaced."""
    _check_layout(x)
    index = _strided_index(x, size, stride, offset).reshape(-1)
    return x.reshape(-1).scatter(0, index, source.reshape(-1)).reshape(x.shape)


@FAMILY.decomposes(
    aten.empty_strided.default, aten.empty_permuted.default, reason="the compiler has no strides"
)
def empty(size: Sequence[Any], _: Any, *, dtype: Any = None, **kwargs: Any) -> Tensor:
    """`empty_strided` and `empty_permuted`: zeros, for reproducible results."""
    return torch.zeros(list(size), dtype=dtype, device=kwargs.get("device"))


_UNINITIALISED = "uninitialised memory would make results irreproducible"


@FAMILY.decomposes(aten.empty.memory_format, reason=_UNINITIALISED)
def empty_of_size(size: Sequence[Any], *, dtype: Any = None, **kwargs: Any) -> Tensor:
    """`empty`: zeros, for reproducible results."""
    return torch.zeros(list(size), dtype=dtype, device=kwargs.get("device"))


@FAMILY.decomposes(aten.empty_like.default, reason=_UNINITIALISED)
def empty_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    """`empty_like`: zeros, for reproducible results."""
    return torch.zeros(x.shape, dtype=dtype or x.dtype, device=x.device)


@FAMILY.decomposes(aten.new_empty.default, reason=_UNINITIALISED)
def new_empty_of_size(x: Tensor, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Tensor:
    """`new_empty`: zeros, for reproducible results."""
    return torch.zeros(list(size), dtype=dtype or x.dtype, device=x.device)


@FAMILY.decomposes(aten.select_scatter.default, reason="wrong for negative indices")
def select_scatter(x: Tensor, source: Tensor, dim: int, index: Any) -> Any:
    """`select_scatter` with a negative index, normalised."""
    if not isinstance(index, int) or index >= 0:
        return NotImplemented
    return torch.select_scatter(x, source, dim, index + x.shape[dim])


@FAMILY.decomposes(aten.new_empty_strided.default, reason="the compiler has no strides")
def new_empty(x: Tensor, size: Sequence[Any], _: Any, *, dtype: Any = None, **__: Any) -> Tensor:
    """`new_empty_strided`: zeros, for reproducible results."""
    return torch.zeros(list(size), dtype=dtype or x.dtype, device=x.device)


def _bags(indices: Tensor, offsets: Tensor) -> Tensor:
    """Return the bag of each index."""
    places = torch.arange(indices.shape[0], device=indices.device)
    return (places[:, None] >= offsets[None]).to(torch.int64).sum(1) - 1


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`embedding_bag`: sums (mode 0), means (1) or maxima (2) of the rows of each bag.

    The other results are the bag of each index, the size of each bag, and zeros.
    """
    if include_last_offset:
        offsets = offsets[:-1]
    bags = _bags(indices, offsets)
    rows = weight.index_select(0, indices)
    counted = torch.ones_like(indices, dtype=torch.int64)
    if padding_idx is not None and padding_idx >= 0:
        counted = (indices != padding_idx).to(torch.int64)
    member = bags[None] == torch.arange(offsets.shape[0], device=indices.device)[:, None]
    member = torch.logical_and(member, counted[None] != 0)
    counts = member.to(torch.int64).sum(1)
    if mode == 2:
        lowest = torch.finfo(weight.dtype).min
        masked = torch.where(member[..., None], rows[None], lowest)
        bag = torch.where(counts[:, None] > 0, masked.amax(1), torch.zeros_like(masked[:, 0]))
    else:
        if per_sample_weights is not None:
            rows = rows * per_sample_weights[:, None]
        bag = torch.matmul(member.to(rows.dtype), rows)
        if mode == 1:
            bag = bag / counts.clamp(min=1)[:, None].to(bag.dtype)
    return bag, bags, counts, torch.zeros_like(counts)


for _operator in (
    aten.embedding_bag.default,
    aten.embedding_bag.padding_idx,
    aten._embedding_bag.default,
    aten._embedding_bag_forward_only.default,
):
    FAMILY.enter(_operator, embedding_bag, reason="wrong results")


@FAMILY.decomposes(aten.renorm.default, reason="wrong results")
def renorm(x: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    """`renorm`: x with each slice along `dim` scaled down to a norm of at most `maxnorm`."""
    others = [axis for axis in range(x.dim()) if axis != dim % x.dim()]
    norm = torch.linalg.vector_norm(x, p, others, keepdim=True)
    factor = torch.where(norm > maxnorm, maxnorm / (norm + 1e-7), torch.ones_like(norm))
    return x * factor


@FAMILY.decomposes(aten.diagonal_scatter.default, reason="no lowering on some offsets")
def diagonal_scatter(
    x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """`diagonal_scatter`: x with one of its diagonals replaced."""
    last = x.movedim((dim1, dim2), (-2, -1))
    rows = torch.arange(last.shape[-2], device=x.device)
    columns = torch.arange(last.shape[-1], device=x.device)
    place = (rows - max(0, -offset)).clamp(0, max(0, source.shape[-1] - 1))
    spread = source.index_select(-1, place)[..., None]
    result = torch.where(columns[None] - rows[:, None] == offset, spread, last)
    return result.movedim((-2, -1), (dim1, dim2))
