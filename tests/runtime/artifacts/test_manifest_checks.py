"""Consistency checks of a manifest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pelton.runtime.artifacts.entry_points import Bounds, EngineProfile, EntryPoint, Member
from pelton.runtime.artifacts.manifest_checks import check_function, check_member, check_shared
from pelton.runtime.call.signature import ConstantSpec
from pelton.runtime.errors import ArtifactError
from tests.runtime.manifests import ENGINE, entry_point, manifest, port

MEMBERS = manifest().members
X, K = port("x"), port("k", (), dtype="int64", is_scalar=True)


def profile(**bounds: Bounds) -> tuple[EngineProfile, ...]:
    return (EngineProfile("p", bounds),)


def test_consistent_function_is_accepted() -> None:
    check_function(entry_point(), MEMBERS)
    check_function(entry_point(profiles=profile()), MEMBERS)
    host = replace(K, host=True)
    check_function(
        entry_point(inputs=(X, host), profiles=profile(k=Bounds((1,), (2,), (3,)))), MEMBERS
    )


def test_constants_have_no_ports() -> None:
    signature = entry_point().signature
    inputs = (signature.inputs[0], ConstantSpec(3))
    check_function(entry_point(signature=replace(signature, inputs=inputs), inputs=(X,)), MEMBERS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": (X,)}, "the inputs of function 'main' are 1 ports for 2 leaves"),
        ({"inputs": (X, K, X)}, "these names occur more than once: 'x'"),
        ({"inputs": (K, X)}, "the inputs of function 'main': port 'k' (int64[]) is not float32"),
        (
            {"inputs": (port("s", (), "state"), X, K)},
            "the inputs of function 'main' do not come first",
        ),
        ({"inputs": (port("x", ("n",)), K)}, "port 'x' (float32[n]) is not float32[n, 4]"),
        ({"inputs": (port("x", dtype="int8"), K)}, "port 'x' (int8[n, 4]) is not float32[n, 4]"),
        ({"inputs": (port("x", is_scalar=True), K)}, "port 'x' (float32[n, 4]) is not float32"),
        ({"inputs": (X, port("k", (), dtype="int64"))}, "port 'k' (int64[]) is not int"),
        ({"inputs": (X, replace(K, shape=(1,)))}, "port 'k' (int64[1]) is not int"),
        ({"inputs": (port("x", ("m", 4)), K)}, "'x' of function 'main' has unknown sizes ['m']"),
        ({"outputs": ()}, "the results of function 'main' are 0 ports for 1 leaves"),
        (
            {"profiles": profile(y=Bounds((1,), (1,), (1,)))},
            "profile 'p' of function 'main' has no input 'y'",
        ),
        (
            {"profiles": profile(x=Bounds((1, 4), (2,), (8, 4)))},
            "'x' of function 'main' has bounds of another rank",
        ),
        (
            {"inputs": (replace(X, host=True), K), "profiles": profile(x=Bounds((), (), ()))},
            "host input 'x' has no fixed shape: float32[n, 4]",
        ),
        ({"members": {"engine": "missing"}}, "function 'main' has no member missing (engine)"),
        ({"members": {"layers": ENGINE}}, "function 'main' has neither an engine nor a fallback"),
    ],
)
def test_inconsistent_function_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        check_function(entry_point(**changes), MEMBERS)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (Member(-1, "0" * 64), "m has -1 bytes"),
        (Member(1, "0" * 63), "the SHA-256 of m is "),
        (Member(1, "g" * 64), "expected 64 hexadecimal digits"),
        (Member(1, "0" * 65), "expected 64 hexadecimal digits"),
    ],
)
def test_member_without_size_or_checksum_is_refused(member: Member, message: str) -> None:
    check_member("m", Member(0, "0" * 64))
    with pytest.raises(ArtifactError) as caught:
        check_member("m", member)
    assert message in str(caught.value)


def with_state(name: str, *shape: Any) -> EntryPoint:
    return entry_point(name, inputs=(port("state.total", shape, "state", origin="total"),))


def test_shared_values_have_one_fixed_shape() -> None:
    check_shared("state", (entry_point(), entry_point("second")))
    check_shared("parameter", (with_state("main", 5), with_state("second", 6)))
    with pytest.raises(
        ArtifactError, match=r"state 'total' of function 'main' has no fixed shape: float32\[n\]"
    ):
        check_shared("state", (with_state("main", "n"),))
    with pytest.raises(
        ArtifactError, match=r"of function 'main' is float32\[4\], elsewhere float32\[5\]"
    ):
        check_shared("state", (with_state("main", 5),))
