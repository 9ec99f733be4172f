"""Profiles: sets of bounds of a signature's dimensions."""

from __future__ import annotations

from typing import Any

import pytest

from pelton import aot
from pelton.aot.spec.profiles import with_profiles
from pelton.runtime.call.signature import Signature
from pelton.runtime.call.sizes import Dim

SIGNATURE = Signature("f", dims=(Dim("n", 1, 512, 64), Dim("m", 0, None)))


def profiles(given: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(p.name, dict(p.bounds)) for p in with_profiles(SIGNATURE, given).profiles]


def test_profiles_by_number_and_by_name() -> None:
    assert profiles([{"n": 1}, {"n": (2, 3, 4), "m": 7}]) == [
        ("0", {"n": (1, 1, 1)}), ("1", {"n": (2, 3, 4), "m": (7, 7, 7)}),
    ]  # fmt: skip
    assert profiles({"token": {"n": 1}}) == [("token", {"n": (1, 1, 1)})]
    assert profiles([]) == []


def test_dimensions_may_be_given_as_objects() -> None:
    n = aot.NamedDimension("n", 1, 64, 512)
    assert profiles([{n: (1, 2, 3)}, {"n": n}]) == [
        ("0", {"n": (1, 2, 3)}), ("1", {"n": (1, 64, 512)}),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 512, (1, 1, 512), (512, 512, 512)])
def test_ends_of_the_range_are_within_it(size: Any) -> None:
    assert len(profiles([{"n": size}])) == 1


@pytest.mark.parametrize(
    "given, message",
    [
        ("n", "profiles must be a sequence of .*, or such by name, got 'n'"),
        (3, "profiles must be a sequence"),
        ([{}], "profile '0' must give bounds by dimension"),
        ([["n"]], "profile '0' must give bounds by dimension"),
        ({1: {"n": 1}}, "profile 1: the name of a profile must be text"),
        ([{"k": 1}], "profile '0': no dynamic dimension 'k'; there are: n.*, m"),
        ({"p": {"n": 0}}, r"profile 'p': dimension 'n' has bounds 0\.\.0, outside its range"),
        ({"p": {"n": (1, 2, 513)}}, r"has bounds 1\.\.513, outside its range"),
    ],
)
def test_wrong_profiles_are_refused(given: Any, message: str) -> None:
    with pytest.raises(aot.DynamicShapeError, match=message):
        with_profiles(SIGNATURE, given)


def test_bounds_out_of_order_are_refused_with_the_profile() -> None:
    with pytest.raises(aot.ExportError, match=r"profile 'p': dimension 'n' has bounds \(min=3"):
        with_profiles(SIGNATURE, {"p": {"n": (3, 2, 4)}})


def test_a_signature_without_dimensions_has_no_profile() -> None:
    with pytest.raises(aot.DynamicShapeError, match="no dynamic dimension 'n'; there are: none"):
        with_profiles(Signature("f"), [{"n": 1}])
