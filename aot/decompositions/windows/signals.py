"""Window functions of signals, from their formulas, with the rounding of eager torch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..registry import Family

aten = torch.ops.aten

FAMILY = Family("windows of signals")

_REASON = "no lowering, or one that is off by 2e-6"


def _cosines(places: Tensor, length: int, *factors: float) -> Tensor:
    """Return a sum of cosines: `factors[k]` times the one of k periods in the window."""
    turn = places * (2 * math.pi / (length - 1))
    result = torch.full_like(places, factors[0])
    for count, factor in enumerate(factors[1:], 1):
        result = result + factor * torch.cos(count * turn)
    return result


def _hann(places: Tensor, length: int) -> Tensor:
    return _cosines(places, length, 0.5, -0.5)


def _hamming(places: Tensor, length: int, alpha: float = 0.54, beta: float = 0.46) -> Tensor:
    return _cosines(places, length, alpha, -beta)


def _blackman(places: Tensor, length: int) -> Tensor:
    return _cosines(places, length, 0.42, -0.5, 0.08)


def _bartlett(places: Tensor, length: int) -> Tensor:
    rising = places * (2 / (length - 1))
    return torch.minimum(rising, 2 - rising)


def _kaiser(places: Tensor, length: int, beta: float = 12.0) -> Tensor:
    middle = (length - 1) / 2
    part = 1 - ((places - middle) / middle) ** 2
    return torch.i0(beta * torch.sqrt(part.clamp_min(0))) / float(np.i0(beta))


def _window(formula: Callable[..., Tensor]) -> Callable[..., Any]:
    """Return the decomposition of a window function.

    Args:
        formula: Takes the places of the window, its length without the last place of a periodic
            one, and the parameters of its shape.
    """

    def decomposition(length: int, periodic: bool = True, *shape: float, **kwargs: Any) -> Any:
        dtype = kwargs.get("dtype") or torch.get_default_dtype()
        if not isinstance(length, int) or kwargs.get("layout") not in (None, torch.strided):
            return NotImplemented
        if length <= 1:
            return torch.ones(length, dtype=dtype, device=kwargs.get("device"))
        whole = length + 1 if periodic else length
        places = torch.arange(length, dtype=dtype, device=kwargs.get("device"))
        return formula(places, whole, *shape)

    return decomposition


for _name, _formula in (
    ("hann", _hann),
    ("hamming", _hamming),
    ("blackman", _blackman),
    ("bartlett", _bartlett),
    ("kaiser", _kaiser),
):
    _packet = getattr(aten, f"{_name}_window")
    for _overload in _packet.overloads():
        if not _overload.endswith("out"):
            FAMILY.enter(getattr(_packet, _overload), _window(_formula), reason=_REASON)
