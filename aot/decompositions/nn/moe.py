"""Mixture-of-experts operators: histograms of expert indices, and grouped matrix products."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...compat.operators import OpOverload
from ..registry import Entry, Family

aten = torch.ops.aten

FAMILY = Family("moe")

_NO_LOWERING = "no lowering in the torch dialect"


@FAMILY.decomposes(aten.histc.default, reason=_NO_LOWERING)
def histc(x: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """`histc`: counts of elements in equal bins between min and max."""
    flat = x.reshape(-1)
    if min == max:
        low, high = flat.amin(), flat.amax()
        alike = low == high
        low, high = torch.where(alike, low - 1, low), torch.where(alike, high + 1, high)
    else:
        low, high = (torch.full((), bound, dtype=x.dtype, device=x.device) for bound in (min, max))
    position = ((flat - low) / (high - low) * bins).floor()
    position = torch.where(flat == high, torch.full_like(position, bins - 1), position)
    order = torch.arange(bins, device=x.device).to(position.dtype)
    return (position[:, None] == order).to(x.dtype).sum(0)


def grouped_mm(x: Tensor, matrices: Tensor, offs: Tensor | None = None, *_: Any, **__: Any) -> Any:
    """`_grouped_mm`: x[i] @ matrices[g] for each row i of group g, which ends at row offs[g].

    All rows are multiplied with all matrices, and the products of their groups are gathered.
    """
    if x.dim() != 2 or matrices.dim() != 3 or offs is None:
        return NotImplemented
    rows = torch.arange(x.shape[0], device=x.device)
    group = (rows[:, None] >= offs[None].to(rows.dtype)).to(torch.int64).sum(1)
    products = torch.matmul(x[None], matrices)
    index = group.clamp(max=matrices.shape[0] - 1)[None, :, None]
    index = index.expand(1, x.shape[0], matrices.shape[2])
    chosen = torch.gather(products, 0, index)[0]
    return torch.where((group < matrices.shape[0])[:, None], chosen, torch.zeros_like(chosen))


FAMILY.enter(aten._grouped_mm.default, grouped_mm, reason=_NO_LOWERING)


def entries_of_loaded_libraries() -> list[Entry]:
    """Return entries for operators that other packages define, if they have been imported."""
    packet = getattr(torch.ops.transformers, "grouped_mm_fallback", None)
    operator = getattr(packet, "default", None)
    if not isinstance(operator, OpOverload):
        return []
    return [Entry(operator, grouped_mm, _NO_LOWERING)]
