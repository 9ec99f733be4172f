"""Writing, reducing and counting at places that are given, and the most frequent elements."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ...compat.symbolic import check
from ...spec.sizes import is_static
from ..real_types import ends_of
from ..registry import Decomposition, Family

aten = torch.ops.aten

FAMILY = Family("selections")

_REASON = "no lowering"


@FAMILY.decomposes(aten.index_reduce.default, reason=_REASON)
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return x with slices of another tensor reduced into it."""
    if x.dim() == 0:
        found = index_reduce(
            x[None], 0, index.reshape(-1), source.reshape(-1), reduce, include_self=include_self
        )
        return found.squeeze(0)
    dim = dim % x.dim()
    shape = [-1 if axis == dim else 1 for axis in range(x.dim())]
    places = index.to(torch.int64).reshape(shape).expand(source.shape)
    return torch.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


@FAMILY.decomposes(aten.put.default, reason=_REASON)
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    """Return x with elements replaced at places in its flattened form."""
    flat = x.reshape(-1)
    places = index.reshape(-1)
    places = torch.where(places < 0, places + flat.shape[0], places)
    written = aten.index_put.default(flat, [places], source.reshape(-1), accumulate)
    return written.reshape(x.shape)


@FAMILY.decomposes(aten.take.default, reason="torch's own reads a number where there is one index")
def take(x: Tensor, index: Tensor) -> Tensor:
    """Return elements at places in the flattened form."""
    flat, places = x.reshape(-1), index.reshape(-1)
    places = torch.where(places < 0, places + flat.shape[0], places)
    return flat.index_select(0, places).reshape(index.shape)


_IDENTITIES = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


@FAMILY.decomposes(aten.segment_reduce.default, reason=_REASON)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Any:
    """Return reductions of runs along one dimension."""
    if indices is not None or (lengths is None and offsets is None):
        return NotImplemented
    if offsets is not None:
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    else:
        assert lengths is not None
        ends = lengths.cumsum(-1)
        starts = ends - lengths
    places = torch.arange(data.shape[axis], device=data.device)
    member = torch.logical_and(places >= starts[..., None], places < ends[..., None])
    member = member.reshape(*member.shape, *(1 for _ in range(data.dim() - axis - 1)))
    first = _IDENTITIES[reduce] if initial is None else initial
    values = torch.where(member, data.unsqueeze(axis), _IDENTITIES[reduce])
    counts = (ends - starts).reshape(*ends.shape, *(1 for _ in range(data.dim() - axis - 1)))
    if reduce == "prod":
        return values.prod(axis + 1) * first
    if reduce == "max":
        return values.amax(axis + 1).clamp(min=first)
    if reduce == "min":
        return values.amin(axis + 1).clamp(max=first)
    total = values.sum(axis + 1) + first
    if reduce == "sum":
        return total
    mean = total / counts.clamp(min=1).to(total.dtype)
    return mean if initial is not None else torch.where(counts == 0, math.nan, mean)


@FAMILY.decomposes(aten.histogram.bin_ct, reason=_REASON)
def histogram(
    x: Tensor, bins: int = 100, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """Return how many elements are in each of some bins of equal width, and their edges."""
    flat = x.reshape(-1)
    if range is None and flat.shape[0] == 0:
        return NotImplemented
    if range is None:
        low, high = flat.amin(), flat.amax()
    else:
        low, high = (torch.full((), float(edge), dtype=x.dtype, device=x.device) for edge in range)
    same = low == high
    low, high = torch.where(same, low - 0.5, low), torch.where(same, high + 0.5, high)
    steps = torch.arange(bins + 1, device=x.device).to(x.dtype) / bins
    edges = low + (high - low) * steps
    edges = torch.where(steps == 1, high, edges)
    return histogram_of_edges(x, edges, weight=weight, density=density)


@FAMILY.decomposes(aten.histogram.bins_tensor, reason=_REASON)
def histogram_of_edges(
    x: Tensor, bins: Tensor, *, weight: Any = None, density: bool = False
) -> Any:
    """Return how many elements are between each two edges, the last included, and the edges."""
    flat = x.reshape(-1)
    after, before = flat[None] >= bins[:-1, None], flat[None] < bins[1:, None]
    place = torch.arange(bins.shape[0] - 1, device=x.device)[:, None]
    at_end = torch.logical_and(flat[None] == bins[-1], place == bins.shape[0] - 2)
    member = torch.logical_or(torch.logical_and(after, before), at_end)
    amount = torch.ones_like(flat) if weight is None else weight.reshape(-1)
    counts = torch.where(member, amount[None], 0.0).sum(1)
    if density:
        counts = counts / (counts.sum() * (bins[1:] - bins[:-1]))
    return counts, bins.clone()


@FAMILY.decomposes(aten.repeat_interleave.Tensor, reason=_REASON)
def repeat_interleave(repeats: Tensor, *, output_size: Any = None) -> Tensor:
    """Return each index as often as is said for it."""
    ends = repeats.to(torch.int64).cumsum(0)
    if output_size is None:
        output_size = ends[-1].item()
        check(output_size >= 0)
    marks = torch.zeros(output_size + 1, dtype=torch.int64, device=repeats.device)
    marks = marks.scatter_add(0, ends, torch.ones_like(ends))
    return marks.cumsum(0).narrow(0, 0, output_size)


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
    if include_self or not x.dim() or all(is_static(size) for size in sizes):
        return NotImplemented
    neutral = None if x.dtype is torch.bool else _neutral(reduce, x.dtype)
    if neutral is None:
        return NotImplemented
    ones = torch.ones(index.shape, dtype=torch.int32, device=x.device)
    counts = torch.zeros(x.shape, dtype=torch.int32, device=x.device)
    reached = counts.scatter_add(dim, index, ones) > 0
    kept = x.masked_fill(reached, neutral)
    return torch.scatter_reduce(kept, dim, index, source, reduce)


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
