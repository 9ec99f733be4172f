"""Profiles: several sets of bounds for one function, where one wide range would say too little."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from pelton.runtime.call.signature import Signature
from pelton.runtime.call.sizes import Dim, Profile

from .errors import DynamicShapeError
from .inputs import InputSize, NamedDimension, bounds_of_size

ProfileBounds = Mapping[str | NamedDimension, InputSize]
"""The bounds of one profile: a size or `(min, opt, max)` by dimension."""

Profiles = Sequence[ProfileBounds] | Mapping[str, ProfileBounds]
"""Several profiles; by name, or numbered from 0."""


def with_profiles(signature: Signature, given: Profiles) -> Signature:
    """Return a signature whose calls must fit at least one of several sets of bounds.

    The range of each dimension stays what the program is exported for; a profile picks a part of
    it. Sizes in the range that no profile takes are refused at the call.

    Args:
        signature: The signature, with its dimensions.
        given: The profiles. A dimension that one does not name has its full range there. Sizes
            without a name of their own are called as the signature does: `x_dim0`.

    Raises:
        DynamicShapeError: A dimension is not there, or bounds are outside its range.

    Example:
        >>> signature = Signature("main", dims=(Dim("length", 1, 512, 64),))
        >>> profiles = {"token": {"length": 1}, "prompt": {"length": (16, 128, 512)}}
        >>> [str(profile) for profile in with_profiles(signature, profiles).profiles]
        ["'token' (length=1..1)", "'prompt' (length=16..512)"]
    """
    if isinstance(given, Mapping):
        named: list[tuple[str, Any]] = list(given.items())
    elif isinstance(given, Sequence) and not isinstance(given, str):
        named = [(str(number), bounds) for number, bounds in enumerate(given)]
    else:
        raise DynamicShapeError(
            "profiles must be a sequence of {dimension: (min, opt, max)}, or such by name, "
            f"got {given!r}"
        )
    dims = {dim.name: dim for dim in signature.dims}
    profiles = tuple(_profile(name, bounds, dims) for name, bounds in named)
    return dataclasses.replace(signature, profiles=profiles)


def _profile(name: Any, given: Any, dims: Mapping[str, Dim]) -> Profile:
    where = f"profile {name!r}"
    if not isinstance(name, str):
        raise DynamicShapeError(f"{where}: the name of a profile must be text")
    if not isinstance(given, Mapping) or not given:
        raise DynamicShapeError(
            f"{where} must give bounds by dimension, as in {{'length': (1, 64, 512)}}, "
            f"got {given!r}"
        )
    bounds = {}
    for key, size in given.items():
        called = key.name if isinstance(key, NamedDimension) else key
        dim = dims.get(called)
        if dim is None:
            known = ", ".join(map(str, dims.values())) or "none"
            raise DynamicShapeError(f"{where}: no dynamic dimension {called!r}; there are: {known}")
        low, optimal, high = bounds_of_size(size, f"{where}: dimension {called!r}")
        if not (dim.contains(low) and dim.contains(high)):
            raise DynamicShapeError(
                f"{where}: dimension {called!r} has bounds {low}..{high}, outside its range "
                f"{dim.bounds}; widen the range or narrow the profile"
            )
        bounds[called] = (low, optimal, high)
    return Profile(name, bounds)
