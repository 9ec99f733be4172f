"""Manifests made by hand, without torch and without a compile."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pelton.runtime.artifacts.entry_points import (
    STATE,
    Bounds,
    EngineProfile,
    EntryPoint,
    Kind,
    Member,
    Port,
    member_name,
)
from pelton.runtime.artifacts.manifest import Manifest
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import Parameter, ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import Dim

ENGINE = member_name("engine", "main")


def port(
    name: str,
    shape: Sequence[Any] = ("n", 4),
    kind: Kind = "user",
    dtype: str = "float32",
    **more: Any,
) -> Port:
    """Return a port whose origin is its name, unless `origin` is among the other fields."""
    fields: dict[str, Any] = {"origin": name, **more}
    return Port(name, kind, dtype=DTYPES[dtype], shape=tuple(shape), **fields)


def signature(name: str = "main") -> Signature:
    """Return the signature of a function of a tensor `x` of dynamic length and an integer `k`."""
    tensor = TensorSpec(DTYPES["float32"], ("n", 4))
    parameters = (
        Parameter("x", "POSITIONAL_OR_KEYWORD", 0),
        Parameter("k", "POSITIONAL_OR_KEYWORD", 1),
    )
    inputs = (tensor, ScalarSpec("int"))
    return Signature(name, parameters, inputs, 0, (tensor,), (Dim("n", 1, 8, 2),), ("total",))


def entry_point(name: str = "main", **changes: Any) -> EntryPoint:
    """Return an entry point with an engine, a profile and a piece of state."""
    state = port("state.total", (4,), "state", origin="total")
    entry = EntryPoint(
        signature(name),
        (port("x"), port("k", (), dtype="int64", is_scalar=True), state),
        (port("result"), replace(state, name="new_state.total")),
        (EngineProfile("default", {"x": Bounds((1, 4), (2, 4), (8, 4))}),),
        {"engine": member_name("engine", name)},
    )
    return replace(entry, **changes)


def manifest(*functions: EntryPoint, **changes: Any) -> Manifest:
    """Return a consistent manifest of entry points; by default of one."""
    functions = functions or (entry_point(),)
    names = {name for function in functions for name in function.members.values()} | {STATE}
    members = {name: Member(1, hashlib.sha256(b"x").hexdigest()) for name in sorted(names)}
    made = Manifest("rtx", "1.7.1.116", ("8.6",), functions, members=members)
    return replace(made, **changes)
