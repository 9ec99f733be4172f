"""At which sizes of the dynamic dimensions a function is tried."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pelton.runtime.call.signature import ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import UNKNOWN, Dim, Profile, evaluate, names_in

USUAL = 4
"""The size tried as usual where a dimension states neither an optimum nor an upper bound."""

LARGEST = 19
"""The largest size tried where a dimension has no upper bound and no larger optimum."""

_NEIGHBOURS = 24
_MOST_TRIALS = 20_000


@dataclass(frozen=True)
class SizeCase:
    """Values of the dynamic dimensions to try.

    Attributes:
        label: Why these: `min`, `opt`, `max`, `1`, `odd`, or `batch=max` where only one is.
        values: The value of each dimension.
    """

    label: str
    values: Mapping[str, int]

    def __str__(self) -> str:
        listed = ", ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{self.label} ({listed})" if listed else self.label


@dataclass(frozen=True)
class _Range:
    """Bounds of a dimension, none open."""

    low: int
    opt: int
    high: int

    def value(self, label: str) -> int:
        wanted = {"min": self.low, "opt": self.opt, "max": self.high, "1": 1, "odd": self._odd}
        return min(max(wanted[label], self.low), self.high)

    @property
    def _odd(self) -> int:
        """An odd size that is no bound: sizes that nobody tuned for."""
        middle = (self.low + self.high) // 2
        near = sorted(range(max(self.low, middle - 8), min(self.high, middle + 8) + 1))
        odd = [n for n in near if n % 2 and n > 1 and n not in (self.low, self.opt, self.high)]
        return min(odd, key=lambda n: abs(n - middle), default=middle)


LABELS = ("min", "opt", "max", "1", "odd")
"""The sizes that are tried of every dimension."""


def size_cases(
    signature: Signature, more: Sequence[Mapping[str, int]] = ()
) -> tuple[list[SizeCase], list[str]]:
    """Return the sizes to try, each within all bounds and relations, and notes of what cannot be.

    All dimensions are at their minimum, optimum, maximum, at 1 and at an odd size together, and
    each is at its minimum and maximum while the others are at their optimum. Where relations
    between the dimensions forbid it, the nearest sizes that fit are taken. With profiles, all this
    is done within each.

    Args:
        signature: The function's signature.
        more: More sizes, by dimension; those that are missing are at their optimum.

    Example:
        >>> from pelton.runtime.call.dtypes import DTYPES
        >>> from pelton.runtime.call.signature import Parameter
        >>> spec = TensorSpec(DTYPES["float32"], ("n",))
        >>> parameter = Parameter("x", "POSITIONAL_OR_KEYWORD", 0)
        >>> one = Signature("main", (parameter,), (spec,), dims=(Dim("n", 2, 8, 4),))
        >>> [str(case) for case in size_cases(one)[0]]
        ['min (n=2)', 'opt (n=4)', 'max (n=8)', 'odd (n=5)']
    """
    if not signature.dims and not _has_unknown(signature):
        return [SizeCase("fixed", {})], []
    found: dict[tuple[tuple[str, int], ...], SizeCase] = {}
    notes: list[str] = []
    for profile in signature.profiles or (None,):
        ranges = _ranges(signature, profile)
        for label, wanted in _wanted(ranges, more):
            label = f"{profile.name}: {label}" if profile else label
            values = _nearest(signature, ranges, wanted)
            if values is None:
                listed = ", ".join(f"{name}={value}" for name, value in wanted.items())
                notes.append(f"{signature.name}(): no sizes near {label} ({listed}) fit together")
            else:
                found.setdefault(tuple(values.items()), SizeCase(label, values))
    return list(found.values()), notes


def _has_unknown(signature: Signature) -> bool:
    return any(UNKNOWN in leaf.shape for leaf in signature.inputs if isinstance(leaf, TensorSpec))


def _ranges(signature: Signature, profile: Profile | None) -> dict[str, _Range]:
    ranges = {dim.name: _range(dim) for dim in signature.dims}
    for name, (low, opt, high) in profile.bounds.items() if profile else ():
        ranges[name] = _Range(low, opt, high)
    if _has_unknown(signature):
        ranges[UNKNOWN] = _Range(1, USUAL, LARGEST)
    return ranges


def _range(dim: Dim) -> _Range:
    high = max(LARGEST, dim.min, 2 * (dim.opt or 0)) if dim.max is None else dim.max
    usual = min(max(USUAL, dim.min), high) if dim.opt is None else dim.opt
    return _Range(dim.min, usual, high)


def _wanted(
    ranges: Mapping[str, _Range], more: Sequence[Mapping[str, int]]
) -> Iterator[tuple[str, dict[str, int]]]:
    optimum = {name: found.opt for name, found in ranges.items()}
    for label in LABELS:
        yield label, {name: found.value(label) for name, found in ranges.items()}
    for name, found in ranges.items() if len(ranges) > 1 else ():
        for label in ("min", "max"):
            yield f"{name}={label}", {**optimum, name: found.value(label)}
    for given in more:
        yield "asked", {**optimum, **given}


def _nearest(
    signature: Signature, ranges: Mapping[str, _Range], wanted: Mapping[str, int]
) -> dict[str, int] | None:
    """Return the sizes nearest to `wanted` that the function takes; None: none were found."""
    if fits(signature, wanted):
        return dict(wanted)
    choices = [_near(ranges[name], value) for name, value in wanted.items()]
    offsets = itertools.islice(itertools.product(*choices), _MOST_TRIALS)
    trials = (dict(zip(wanted, values, strict=True)) for values in offsets)
    fitting = (values for values in trials if fits(signature, values))
    return min(
        fitting, key=lambda v: sum(abs(v[name] - wanted[name]) for name in wanted), default=None
    )


def _near(bounds: _Range, value: int) -> list[int]:
    around = range(max(bounds.low, value - _NEIGHBOURS), min(bounds.high, value + _NEIGHBOURS) + 1)
    return sorted(around, key=lambda other: abs(other - value))


def fits(signature: Signature, values: Mapping[str, int]) -> bool:
    """Return whether a function takes these sizes: bounds, relations, profiles, none negative."""
    if not all(dim.contains(values[dim.name]) for dim in signature.dims):
        return False
    if not all(constraint.holds(values) for constraint in signature.constraints):
        return False
    if signature.profiles and not any(p.contains(values) for p in signature.profiles):
        return False
    for leaf in signature.inputs:
        for size in leaf.shape if isinstance(leaf, TensorSpec) else _number(leaf):
            found = evaluate(size, values)
            if found is None or (found < 0 and isinstance(leaf, TensorSpec)):
                return False
    return True


def _number(leaf: object) -> list[object]:
    sized = isinstance(leaf, ScalarSpec) and leaf.size is not None
    return [leaf.size] if sized and names_in(leaf.size) else []  # type: ignore[attr-defined]
