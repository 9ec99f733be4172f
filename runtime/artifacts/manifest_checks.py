"""Consistency checks of a manifest: signatures, ports, profiles and members."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from ..call import sizes
from ..call.signature import ConstantSpec, Leaf, TensorSpec
from ..checked import require, require_unique
from .entry_points import EntryPoint, Member, Port

_SHA256 = re.compile("[0-9a-f]{64}")


def check_function(function: EntryPoint, members: Mapping[str, Member]) -> None:
    """Check that signature, ports, profiles and members of a function are consistent.

    Raises:
        ArtifactError: Names the function and the inconsistency.
    """
    what = f"function {function.name!r}"
    ports = {port.name: port for port in function.inputs}
    require_unique(port.name for port in (*function.inputs, *function.outputs))
    _check_leaves(f"the inputs of {what}", function.signature.inputs, function.inputs)
    _check_leaves(f"the results of {what}", function.signature.results, function.outputs)
    known = {dim.name for dim in function.signature.dims} | {sizes.UNKNOWN}
    for port in function.inputs:
        unknown = set().union(*(sizes.names_in(size) for size in port.shape)) - known
        require(not unknown, f"{port.name!r} of {what} has unknown sizes {sorted(unknown)}")
    for profile in function.profiles:
        for name, bounds in profile.inputs.items():
            require(name in ports, f"profile {profile.name!r} of {what} has no input {name!r}")
            ranks = {len(bounds.min), len(bounds.opt), len(bounds.max)}
            require(ranks == {_rank(ports[name])}, f"{name!r} of {what} has bounds of another rank")
    for role, member in function.members.items():
        require(member in members, f"{what} has no member {member} ({role})")
    has_code = {"engine", "fallback"} & set(function.members)
    require(bool(has_code), f"{what} has neither an engine nor a fallback")


def check_member(name: str, member: Member) -> None:
    """Check that a member has a size and a checksum.

    Raises:
        ArtifactError: Names the member.
    """
    require(member.nbytes >= 0, f"{name} has {member.nbytes} bytes")
    require(
        _SHA256.fullmatch(member.sha256) is not None,
        f"the SHA-256 of {name} is {member.sha256!r:.80}, expected 64 hexadecimal digits",
    )


def _rank(port: Port) -> int:
    """Return the number of bounds of an input: dimensions, or the values of a host input."""
    if not port.host:
        return len(port.shape)
    shape = port.spec.static_shape
    require(shape is not None, f"host input {port.name!r} has no fixed shape: {port.spec}")
    return math.prod(shape or ())


def _check_leaves(what: str, leaves: tuple[Leaf, ...], ports: tuple[Port, ...]) -> None:
    """Check that the ports of kind `user` are the leaves other than constants, in order."""
    given = [leaf for leaf in leaves if not isinstance(leaf, ConstantSpec)]
    own = [port for port in ports if port.kind == "user"]
    require(own == list(ports[: len(own)]), f"{what} do not come first")
    require(len(own) == len(given), f"{what} are {len(own)} ports for {len(given)} leaves")
    for leaf, port in zip(given, own, strict=True):
        if isinstance(leaf, TensorSpec):
            same_type = port.dtype is leaf.dtype and len(port.shape) == len(leaf.shape)
            fits = same_type and not port.is_scalar
        else:
            fits = port.is_scalar and not port.shape
        require(fits, f"{what}: port {port.name!r} ({port.spec}) is not {leaf}")


def check_shared(kind: str, functions: tuple[EntryPoint, ...]) -> None:
    """Check that a shared value has a fixed shape, and the same in all functions.

    Raises:
        ArtifactError: Names the function and what differs.
    """
    seen: dict[str, Port] = {}
    for function in functions:
        for port in (p for p in (*function.inputs, *function.outputs) if p.kind == kind):
            what = f"{kind} {port.origin!r} of function {function.name!r}"
            require(port.spec.static_shape is not None, f"{what} has no fixed shape: {port.spec}")
            first = seen.setdefault(port.origin, port)
            require(first.spec == port.spec, f"{what} is {port.spec}, elsewhere {first.spec}")
