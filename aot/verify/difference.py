"""The difference of a result from the expected one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from pelton.runtime.call.dtypes import DTYPES, DType, dtype_of

from .options import Numerics

_ROUNDINGS = 4
"""Differences up to this many times the precision of the element type are none: where a result is
zero but for rounding, no relative difference means anything."""


@dataclass(frozen=True)
class Difference:
    """How far a result is from the wanted one.

    Attributes:
        absolute: The largest difference of an element; infinite where only one is finite.
        relative: The largest, as a part of the wanted element plus the root of the mean square of
            all; so that small elements among large ones ask for no more than the large ones.
        problem: Why it is too far; empty where it is not.
    """

    absolute: float = 0.0
    relative: float = 0.0
    problem: str = ""


def difference(wanted: Any, got: Any, options: Numerics) -> Difference:
    """Compare a result, a tensor or a number, with the wanted one.

    Args:
        wanted: The expected result.
        got: The result of the artifact.
        options: The tolerances.

    Example:
        >>> found = difference(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]), Numerics())
        >>> found.absolute, found.problem
        (0.5, 'off by more than 0.001 of its size')
    """
    if not isinstance(wanted, torch.Tensor):
        return _of_numbers(wanted, got, options)
    if not isinstance(got, torch.Tensor):
        return _different(f"is {got!r}, not a tensor")
    if (wanted.dtype, wanted.shape) != (got.dtype, got.shape):
        shown = [f"{dtype_of(t.dtype)}{list(t.shape)}" for t in (got, wanted)]
        return _different(f"is {shown[0]}, wanted {shown[1]}")
    row = dtype_of(wanted.dtype)
    assert row is not None
    if not wanted.is_floating_point() and not wanted.is_complex():
        return _of_integers(wanted, got)
    return _of_floats(wanted.detach().cpu(), got.detach().cpu(), row, options.tolerance(row))


def _different(problem: str) -> Difference:
    return Difference(math.inf, math.inf, problem)


def _of_numbers(wanted: Any, got: Any, options: Numerics) -> Difference:
    if type(wanted) is not type(got):
        return _different(f"is {got!r}, wanted {wanted!r}")
    if not isinstance(wanted, float):
        return Difference() if wanted == got else _different(f"is {got!r}, wanted {wanted!r}")
    # A Python number that was an element of a tensor is as precise as that one was.
    want, have = (torch.tensor(value, dtype=torch.float64) for value in (wanted, got))
    row = DTYPES["float32"]
    return _of_floats(want, have, row, options.tolerance(row))


def _of_integers(wanted: torch.Tensor, got: torch.Tensor) -> Difference:
    unequal = wanted != got
    count = int(unequal.sum())
    if not count:
        return Difference()
    apart = (wanted.to(torch.float64) - got.to(torch.float64)).abs()
    size = wanted.to(torch.float64).abs().clamp(min=1)
    problem = f"{count} of {wanted.numel()} elements are not equal"
    return Difference(float(apart.max()), float((apart / size).max()), problem)


def _of_floats(wanted: torch.Tensor, got: torch.Tensor, row: DType, tolerance: float) -> Difference:
    wide = torch.complex128 if wanted.is_complex() else torch.float64
    want, have = wanted.to(wide), got.to(wide)
    odd = _nonfinite_problem(want, have)
    if odd:
        return _different(odd)
    finite = torch.isfinite(want)
    want, have = want[finite], have[finite]
    if not want.numel():
        return Difference()
    apart = (have - want).abs()
    scale = want.abs() + want.abs().square().mean().sqrt()
    relative = torch.where(apart == 0, apart, apart / scale.clamp(min=1e-300))
    rounding = _ROUNDINGS * torch.finfo(getattr(torch, row.name)).eps if tolerance else 0.0
    too_far = (relative > tolerance) & (apart > rounding)
    problem = f"off by more than {tolerance:g} of its size" if bool(too_far.any()) else ""
    return Difference(float(apart.max()), float(relative.max()), problem)


def _nonfinite_problem(want: torch.Tensor, have: torch.Tensor) -> str:
    """Return what is wrong where either is not finite; empty where both are so alike."""
    finite = torch.isfinite(want)
    broken = int((finite & ~torch.isfinite(have)).sum())
    if broken:
        return f"{broken} of {want.numel()} elements are NaN or infinite, wanted finite ones"
    same_nan = torch.isnan(want) == torch.isnan(have)
    infinite = torch.isinf(want) & ~torch.isnan(want)
    wrong = int(((~same_nan) | (infinite & (want != have))).sum())
    return (
        f"{wrong} of {want.numel()} elements are not as infinite or NaN as wanted" if wrong else ""
    )
