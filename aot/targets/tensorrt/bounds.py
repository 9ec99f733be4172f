"""Optimisation profiles: the sizes that an engine is built for, from the bounds of a signature."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from pelton.runtime.artifacts.entry_points import Bounds, EngineProfile, Port
from pelton.runtime.call.signature import ConstantSpec, ScalarSpec, Signature
from pelton.runtime.call.sizes import OPERATORS, Constraint, Dim, Profile, Size, evaluate, names_in

from ...spec.errors import DynamicShapeError, ExportError
from ...spec.profiles import ProfileBounds, Profiles, with_profiles

_SEARCHED = 4096
"""How many sizes are tried for one that the program can have."""

Interval = tuple[int, int]


def profiled(signature: Signature, given: Profiles | None) -> Signature:
    """Return a signature with the profiles that apply to it.

    Args:
        signature: Of a function.
        given: Bounds by dimension for all functions of a module; a function takes those of its own
            dimensions.

    Raises:
        DynamicShapeError: Bounds are outside of a dimension's range.
    """
    if given is None:
        return signature
    own = {dim.name for dim in signature.dims}
    named = given.items() if isinstance(given, Mapping) else enumerate(given)
    kept: dict[str, ProfileBounds] = {}
    for name, bounds in named:
        if not isinstance(bounds, Mapping):
            return with_profiles(signature, given)  # says what is wrong
        mine = {d: size for d, size in bounds.items() if getattr(d, "name", d) in own}
        if mine and mine not in kept.values():
            kept[str(name)] = mine
    return with_profiles(signature, kept) if kept else signature


def check_profiles(signatures: Iterable[Signature], given: Profiles | None) -> None:
    """Refuse profiles with a dimension that no function has.

    Raises:
        DynamicShapeError: Names the dimension.
    """
    known = {dim.name: str(dim) for signature in signatures for dim in signature.dims}
    every = given.values() if isinstance(given, Mapping) else given or ()
    for bounds in every:
        for dim in bounds if isinstance(bounds, Mapping) else ():
            name = getattr(dim, "name", dim)
            if name not in known:
                listed = ", ".join(known.values()) or "none"
                raise DynamicShapeError(
                    f"profiles: no function has a dynamic dimension {name!r}; there are: {listed}"
                )


def engine_profiles(signature: Signature, inputs: Sequence[Port]) -> tuple[EngineProfile, ...]:
    """Return the optimisation profiles of an engine, one for each profile of its signature.

    Sizes at the ends that the program cannot have are left out: of a length that must be a multiple
    of 4, the profile of 1 to 30 is 4 to 28.

    Args:
        signature: Of the function.
        inputs: Of the engine.

    Raises:
        DynamicShapeError: A dimension has no upper bound; names all of them.
        ExportError: The optimal sizes are such that the program cannot have.

    Example:
        >>> from pelton.runtime.call.dtypes import DTYPES
        >>> x = Port("x", "user", "x", DTYPES["float32"], ("n", ["*", 2, "n"]))
        >>> (profile,) = engine_profiles(Signature("main", dims=(Dim("n", 1, 8, 4),)), [x])
        >>> profile.inputs["x"]
        Bounds(min=(1, 2), opt=(4, 8), max=(8, 16))
    """
    wanted = _wanted(signature, inputs)
    used = set().union(*(names_in(size) for sizes in wanted.values() for size in sizes))
    unbounded = [dim for dim in signature.dims if dim.max is None and dim.name in used]
    alternatives = signature.profiles or (Profile("default", {}),)
    if any(dim.name not in each.bounds for dim in unbounded for each in alternatives):
        listed = ", ".join(f"{dim.name!r} ({dim.bounds})" for dim in unbounded)
        raise DynamicShapeError(
            f"{signature.name}(): an engine is built for sizes up to a largest one, and there is "
            f"none for {listed}; export with bounds, as in InputInfo((NamedDimension('batch', 1, "
            "8, 32), ...)), or give profiles"
        )
    return tuple(_profile(signature, alternative, wanted) for alternative in alternatives)


def _wanted(signature: Signature, inputs: Sequence[Port]) -> dict[str, tuple[Size, ...]]:
    """Return what a profile bounds of each input: its sizes, or the values of a host input."""
    leaves = [leaf for leaf in signature.inputs if not isinstance(leaf, ConstantSpec)]
    numbers = {
        port.name: leaf.size
        for port, leaf in zip(inputs, leaves, strict=False)  # state and parameters follow
        if port.host and isinstance(leaf, ScalarSpec) and leaf.size is not None
    }
    wanted: dict[str, tuple[Size, ...]] = {}
    for port in inputs:
        if port.name in numbers:
            wanted[port.name] = (numbers[port.name],)
        elif port.host:
            raise DynamicShapeError(
                f"{signature.name}(): sizes depend on the values of {port.origin!r}, for which "
                "there are no bounds; make it an aot.DimensionInputInfo((min, opt, max))"
            )
        elif any(names_in(size) for size in port.shape):
            wanted[port.name] = port.shape
    return wanted


def _profile(
    signature: Signature, profile: Profile, wanted: Mapping[str, Sequence[Size]]
) -> EngineProfile:
    dims = [_possible(_narrowed(dim, profile), signature.constraints) for dim in signature.dims]
    ranges = {dim.name: (dim.min, dim.min if dim.max is None else dim.max) for dim in dims}
    optimum = _optimum(dims, signature.constraints, f"{signature.name}(): profile {profile.name!r}")
    bounds = {}
    for name, sizes in wanted.items():
        ends = [_interval(size, ranges) for size in sizes]
        bounds[name] = Bounds(
            tuple(low for low, _ in ends),
            tuple(evaluate(size, optimum) or 0 for size in sizes),
            tuple(high for _, high in ends),
        )
    return EngineProfile(profile.name, bounds)


def _narrowed(dim: Dim, profile: Profile) -> Dim:
    """Return a dimension with the bounds that it has in a profile."""
    if dim.name not in profile.bounds:
        return dim
    low, optimal, high = profile.bounds[dim.name]
    return dataclasses.replace(dim, min=low, opt=optimal, max=high)


def _possible(dim: Dim, constraints: Iterable[Constraint]) -> Dim:
    """Return a dimension without sizes at its ends that the program cannot have."""
    own = [c for c in constraints if names_in(c.left) | names_in(c.right) == {dim.name}]
    if not own or dim.max is None:
        return dim

    def fits(size: int) -> bool:
        return all(constraint.holds({dim.name: size}) for constraint in own)

    low = next(filter(fits, range(dim.min, min(dim.max, dim.min + _SEARCHED) + 1)), dim.min)
    high = next(filter(fits, range(dim.max, max(low, dim.max - _SEARCHED) - 1, -1)), dim.max)
    return dataclasses.replace(dim, min=low, max=high)


def _optimum(dims: Sequence[Dim], constraints: Sequence[Constraint], where: str) -> dict[str, int]:
    """Return the sizes to optimise for: as stated, else the largest."""
    sizes = {dim.name: _largest(dim) if dim.opt is None else dim.opt for dim in dims}
    for constraint in constraints:
        if not constraint.holds(sizes):
            said = ", ".join(f"{name}={size}" for name, size in sizes.items())
            raise ExportError(
                f"{where} is optimised for {said}, where the program does not run: it needs "
                f"{constraint}; give other optimal sizes, in NamedDimension or in profiles"
            )
    return sizes


def _largest(dim: Dim) -> int:
    return dim.min if dim.max is None else dim.max


def _interval(size: Size, ranges: Mapping[str, Interval]) -> Interval:
    """Return the smallest and largest value that a size can have.

    Example:
        >>> _interval(["-", 10, "n"], {"n": (1, 4)})
        (6, 9)
    """
    if isinstance(size, int):
        return size, size
    if isinstance(size, str):
        return ranges[size]
    left, right = _interval(size[1], ranges), _interval(size[2], ranges)
    if size[0] == "%":
        return (0, right[1] - 1) if left[0] != left[1] else (left[0] % right[1],) * 2
    if size[0] == "//":
        right = max(right[0], 1), max(right[1], 1)
    ends = [OPERATORS[size[0]](a, b) for a, b in product(left, right)]
    return min(ends), max(ends)
