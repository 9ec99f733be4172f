"""Scatters by index, segment reductions, histograms and repetitions."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ...compat.symbolic import check
from ...spec.sizes import is_static
from ..broadcasting import along
from ..real_types import ends_of
from ..registry import Decomposition, Family

aten = torch.ops.aten

FAMILY = Family("scatter")

_REASON = "no lowering"


@FAMILY.decomposes(aten.index_reduce.default, reason=_REASON)
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`index_reduce`: x with slices of another tensor reduced into it."""
    if x.dim() == 0:
        found = index_reduce(
            x[None], 0, index.reshape(-1), source.reshape(-1), reduce, include_self=include_self
        )
        return found.squeeze(0)
    dim = dim % x.dim()
    places = along(index.to(torch.int64), dim, x.dim()).expand(source.shape)
    return torch.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


@FAMILY.decomposes(aten.put.default, reason=_REASON)
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    """`put`: x with elements replaced at flat indices."""
    flat = x.reshape(-1)
    places = index.reshape(-1)
    places = torch.where(places < 0, places + flat.shape[0], places)
    written = aten.index_put.default(flat, [places], source.reshape(-1), accumulate)
    return written.reshape(x.shape)


@FAMILY.decomposes(
    aten.take.default, reason="the decomposition of torch reads a single index on the host"
)
def take(x: Tensor, index: Tensor) -> Tensor:
    """Return elements at flat indices."""
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
    """`segment_reduce`: reductions of consecutive segments along one dimension."""
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
    """`histogram.bin_ct`: counts in bins of equal width, and the edges of the bins."""
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
    """`histogram.bins_tensor`: counts between consecutive edges (the last is inclusive)."""
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
    """`repeat_interleave.Tensor`: the index i, repeated `repeats[i]` times, for each i."""
    ends = repeats.to(torch.int64).cumsum(0)
    if output_size is None:
        output_size = ends[-1].item()
        check(output_size >= 0)
    marks = torch.zeros(output_size + 1, dtype=torch.int64, device=repeats.device)
    marks = marks.scatter_add(0, ends, torch.ones_like(ends))
    return marks.cumsum(0).narrow(0, 0, output_size).to(repeats.dtype)


def _normalize_negative_dim(operator: OpOverload) -> Decomposition:
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
    FAMILY.enter(
        _operator,
        _normalize_negative_dim(_operator),
        reason="negative dimensions crash the compiler",
    )


def _identity(reduce: str, dtype: torch.dtype) -> float | None:
    """Return the identity of a reduction; None if it has none."""
    if reduce in ("sum", "prod"):
        return int(reduce == "prod")
    least, largest = ends_of(dtype)
    return {"amax": least, "amin": largest}.get(reduce)


@FAMILY.decomposes(aten.scatter_reduce.two, reason="torch.onnx converts a mean to an assignment")
def scatter_mean(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """`scatter_reduce.two` by mean: sums divided by counts."""
    if reduce != "mean" or x.dtype is torch.bool or not x.dim():
        return NotImplemented
    one = torch.ones_like(source)
    count = torch.zeros_like(x).scatter_add(dim, index, one)
    base = x if include_self else torch.where(count > 0, torch.zeros_like(x), x)
    total = base.scatter_add(dim, index, source)
    count = count + 1 if include_self else count.clamp(min=1)
    rounding = None if x.dtype.is_floating_point or x.dtype.is_complex else "floor"
    return torch.div(total, count, rounding_mode=rounding)


@FAMILY.decomposes(
    aten.scatter_reduce.two, reason="does not compile with include_self=False and dynamic sizes"
)
def scatter_reduce_exclude_self(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """`scatter_reduce.two` with include_self=False: its targets are first set to the identity."""
    sizes = (*x.shape, *index.shape)
    if include_self or not x.dim() or all(is_static(size) for size in sizes):
        return NotImplemented
    identity = None if x.dtype is torch.bool else _identity(reduce, x.dtype)
    if identity is None:
        return NotImplemented
    ones = torch.ones(index.shape, dtype=torch.int32, device=x.device)
    counts = torch.zeros(x.shape, dtype=torch.int32, device=x.device)
    reached = counts.scatter_add(dim, index, ones) > 0
    base = x.masked_fill(reached, identity)
    return torch.scatter_reduce(base, dim, index, source, reduce)


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


@FAMILY.decomposes(aten.scatter.reduce, reason="no lowering")
def scatter_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, *, reduce: str) -> Tensor:
    """`scatter.reduce`: x with elements added to it, or multiplied with it, at indices."""
    return torch.scatter_reduce(x, dim, index, source, _REDUCTIONS[reduce])


@FAMILY.decomposes(aten.scatter.value_reduce, reason="no lowering")
def scatter_reduce_value(x: Tensor, dim: int, index: Tensor, value: Any, *, reduce: str) -> Tensor:
    """`scatter.value_reduce`: x with a number added to it, or multiplied with it, at indices."""
    source = torch.full(index.shape, value, dtype=x.dtype, device=x.device)
    return torch.scatter_reduce(x, dim, index, source, _REDUCTIONS[reduce])
