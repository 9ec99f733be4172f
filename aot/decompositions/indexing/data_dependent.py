"""Data-dependent sizes: nonzero, masked selection and indexing by masks, unique elements.

The selected elements are counted and compacted to the front in order, and the result is sliced to
the count. The lowerings of the compiler crash on rank 0 and do not terminate for masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ...compat.symbolic import check
from ...spec.sizes import is_static
from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("data_dependent")

_REASON = "the compiler crashes or does not terminate"


def _true(x: Tensor) -> Tensor:
    return x if x.dtype is torch.bool else x != 0


def _count(selected: Tensor) -> Any:
    """Return the number of true elements of a vector, as an unbacked size."""
    count = selected.to(torch.int64).sum().item()
    check(count >= 0)
    check(count <= selected.shape[0])
    return count


def _compacted(selected: Tensor) -> Tensor:
    """Return the indices of the true elements of a vector in order, padded with its length."""
    length = selected.shape[0]
    rank = selected.to(torch.int64).cumsum(0) - 1
    target = torch.where(selected, rank, torch.full_like(rank, length))
    places = torch.arange(length, device=selected.device)
    all_places = torch.full((length + 1,), length, dtype=torch.int64, device=selected.device)
    return all_places.scatter(0, target, places).narrow(0, 0, length)


def _flat_places(x: Tensor) -> Tensor:
    selected = _true(x).reshape(-1)
    return _compacted(selected).narrow(0, 0, _count(selected))


def _columns(places: Tensor, sizes: Sequence[Any]) -> list[Tensor]:
    """Return flat indices as an index in each dimension."""
    columns: list[Tensor] = []
    for size in reversed(sizes):
        rest = torch.div(places, size, rounding_mode="trunc")
        columns.insert(0, places - rest * size)
        places = rest
    return columns


def _is_empty(x: Tensor) -> bool:
    return any(is_static(size) and size == 0 for size in x.shape)


@FAMILY.decomposes(aten.nonzero.default, reason=_REASON)
def nonzero(x: Tensor) -> Tensor:
    """`nonzero`: the indices of the nonzero elements, one in each row."""
    if _is_empty(x):
        return torch.zeros((0, x.dim()), dtype=torch.int64, device=x.device)
    if x.dim() == 0:
        return torch.zeros((_count(_true(x).reshape(1)), 0), dtype=torch.int64, device=x.device)
    return torch.stack(_columns(_flat_places(x), x.shape), 1)


@FAMILY.decomposes(aten.nonzero_numpy.default, reason=_REASON)
def nonzero_numpy(x: Tensor) -> list[Tensor]:
    """`nonzero_numpy`: the indices of the nonzero elements, a tensor for each dimension."""
    x = x.reshape(1) if x.dim() == 0 else x
    return _columns(_flat_places(x), x.shape)


@FAMILY.decomposes(aten.nonzero_static.default, reason="no lowering")
def nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Any:
    """`nonzero_static`: the first `size` rows of `nonzero`, padded if there are fewer."""
    if _is_empty(x) or x.dim() == 0:
        shape = (size, x.dim())
        return torch.full(shape, fill_value, dtype=torch.int64, device=x.device)
    selected = _true(x).reshape(-1)
    places = _compacted(selected)
    missing = size - selected.shape[0]
    places = torch.constant_pad_nd(places, [0, missing], selected.shape[0])
    index = torch.stack(_columns(places, x.shape), 1)
    return torch.where((places < selected.shape[0])[:, None], index, fill_value)


@FAMILY.decomposes(aten.masked_select.default, reason="no lowering")
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """`masked_select`: the elements under a mask, as a vector."""
    x, mask = torch.broadcast_tensors(x, mask)  # type: ignore[no-untyped-call]
    if _is_empty(x):
        return x.new_zeros(0)
    return x.reshape(-1).index_select(0, _flat_places(mask))


def _is_mask(index: Tensor | None) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8) and index.dim() > 0


def _without_masks(indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return indices with masks replaced by the indices of their true elements."""
    made: list[Tensor | None] = []
    for index in indices:
        if index is not None and _is_mask(index):
            made.extend(nonzero_numpy(index))
        else:
            made.append(index)
    return made


@FAMILY.decomposes(aten.index.Tensor, reason="the compiler does not terminate for masks")
def index_by_mask(x: Tensor, indices: Sequence[Tensor | None]) -> Any:
    """`index.Tensor` with a mask among the indices."""
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    masks = [index for _, index in given if _is_mask(index)]
    if not masks:
        return NotImplemented
    if len(given) > 1 or _is_empty(masks[0]):
        return aten.index.Tensor(x, _without_masks(indices))
    axis, mask = given[0]
    flat = x.flatten(axis, axis + mask.dim() - 1)
    return flat.index_select(axis, _flat_places(mask))


@FAMILY.decomposes(aten.index.Tensor, reason="the lowering fails on dynamic sizes")
def index_by_tensors(x: Tensor, indices: Sequence[Tensor | None]) -> Any:
    """`index.Tensor` with several index tensors and dynamic sizes, as one index_select."""
    given = [index for index in indices if index is not None]
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    dynamic = any(not is_static(size) for tensor in (x, *given) for size in tensor.shape)
    if len(given) < 2 or not dynamic or any(i.dtype not in _INDEX_TYPES for i in given):
        return NotImplemented
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    if not adjacent:
        x = x.movedim(axes, list(range(len(axes))))
        axes = list(range(len(axes)))
    first, last = axes[0], axes[-1]
    places = torch.zeros((), dtype=torch.int64, device=x.device)
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    for axis, index in zip(axes, given, strict=True):
        size = x.shape[axis]
        place = torch.where(index < 0, index + size, index)
        inside = torch.logical_and(inside, torch.logical_and(place >= 0, place < size))
        places = places * size + place
    flat = x.flatten(first, last)
    places = torch.where(inside, places, flat.shape[first])  # not an element of another row
    found = flat.index_select(first, places.reshape(-1))
    return found.reshape(*x.shape[:first], *places.shape, *x.shape[last + 1 :])


_INDEX_TYPES = (torch.int64, torch.int32)


@FAMILY.decomposes(aten.index_put.default, reason="the compiler does not terminate for masks")
def put_by_mask(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Any:
    """`index_put` with a mask: x with the elements under it replaced or added to."""
    mask = indices[0]
    if len(indices) != 1 or mask is None or not _is_mask(mask):
        return NotImplemented
    if _is_empty(x):
        return x.clone()
    rest = x.shape[mask.dim() :]
    if values.dim() > len(rest):
        # The n-th of the values goes to the n-th true element; a single one goes to all.
        rank = (mask.reshape(-1).to(torch.int64).cumsum(0) - 1).clamp(min=0)
        rank = torch.minimum(rank, torch.full_like(rank, values.shape[0] - 1))
        values = values.index_select(0, rank).reshape(*mask.shape, *values.shape[1:])
    chosen = x + values if accumulate else values.to(x.dtype)
    return torch.where(mask.reshape(*mask.shape, *(1 for _ in rest)), chosen, x)


@FAMILY.decomposes(
    aten.index_put.default,
    reason="the lowering adds indices of int64, which it does not mix with those of int32",
)
def put_by_wide_indices(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Any:
    """`index_put` with indices of int32: with those of int64."""
    if not any(index is not None and index.dtype is torch.int32 for index in indices):
        return NotImplemented
    wide = [
        index.to(torch.int64) if index is not None and index.dtype is torch.int32 else index
        for index in indices
    ]
    return aten.index_put.default(x, wide, values, accumulate)


@FAMILY.decomposes(
    aten.index_put.default,
    reason="values are not broadcast to sizes that vary: it writes elsewhere",
)
def put_broadcast_values(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Any:
    """`index_put` of values that are broadcast to the indexed elements."""
    given = [index for index in indices if index is not None]
    if any(_is_mask(index) for index in given):
        return NotImplemented
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    places = torch.broadcast_shapes(  # type: ignore[no-untyped-call]
        *(index.shape for index in given)
    )
    rest = [size for axis, size in enumerate(x.shape) if axis not in axes]
    first = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    shape = [*rest[:first], *places, *rest[first:]]
    same = len(shape) == values.dim() and all(
        statically_known_true(size == wanted)
        for size, wanted in zip(values.shape, shape, strict=True)
    )
    if same or all(is_static(size) for size in (*shape, *values.shape)):
        return NotImplemented
    return aten.index_put.default(x, indices, values.expand(shape), accumulate)


def _starts(x: Tensor) -> Tensor:
    """Return whether each row is the first of a run of equal rows."""
    rows = x.reshape(x.shape[0], -1)
    differs = (rows[1:] != rows[:-1]).any(1)
    first = torch.ones_like(rows[:1, 0], dtype=torch.bool)
    return torch.cat([first, differs])


@FAMILY.decomposes(aten.unique_consecutive.default, reason=_REASON)
def unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """`unique_consecutive`: one of each run of equal elements, inverse indices, and counts."""
    if dim is None:
        if _is_empty(x):
            return NotImplemented
        values, inverse, counts = _runs(x.reshape(-1), return_inverse, return_counts)
        return values, inverse.reshape(x.shape) if return_inverse else inverse, counts
    if _is_empty(x):
        return NotImplemented
    values, inverse, counts = _runs(x.movedim(dim, 0), return_inverse, return_counts)
    return values.movedim(0, dim), inverse, counts


@FAMILY.decomposes(aten.unique_dim_consecutive.default, reason=_REASON)
def unique_dim_consecutive(
    x: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """`unique_dim_consecutive`: one of each run of equal slices, inverse indices, and counts."""
    return unique_consecutive(x, return_inverse, return_counts, dim)


def _runs(x: Tensor, return_inverse: bool, return_counts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first row of each run, and if wanted the run of each row and the run lengths."""
    starts = _starts(x)
    places = _compacted(starts)
    count = _count(starts)
    begins = places.narrow(0, 0, count)
    nothing = torch.zeros(0, dtype=torch.int64, device=x.device)
    inverse = starts.to(torch.int64).cumsum(0) - 1 if return_inverse else nothing
    lengths = nothing
    if return_counts:
        ends = torch.cat([places[1:], torch.full_like(places[:1], x.shape[0])])
        lengths = ends.narrow(0, 0, count) - begins
    return x.index_select(0, begins), inverse, lengths


@FAMILY.decomposes(aten._unique2.default, reason="not in the dialect")
def unique(
    x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """`_unique2`: the distinct elements in ascending order, inverse indices, and counts."""
    if _is_empty(x) or x.dtype.is_complex:
        return NotImplemented
    ordered, order = torch.sort(x.reshape(-1))
    values, run, counts = _runs(ordered, return_inverse, return_counts)
    if not return_inverse:
        return values, run, counts
    inverse = torch.zeros_like(run).scatter(0, order, run)
    return values, inverse.reshape(x.shape), counts
