"""Targets by name, with the options that a name implies."""

from __future__ import annotations

import pytest

from pelton.aot.spec.errors import ExportError
from pelton.aot.targets import TARGETS, find_target


@pytest.mark.parametrize("name", list(TARGETS))
def test_every_target_is_found_by_its_name(name: str) -> None:
    target, implied = find_target(name)
    assert target is TARGETS[name]
    assert implied == {}


def test_an_architecture_is_an_option() -> None:
    target, implied = find_target("cuda:sm_80")
    assert target is TARGETS["cuda"]
    assert implied == {"arch": "sm_80"}


def test_an_unknown_name_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(ExportError, match=r"unknown target 'vulcan'; known: cpu, .*did you mean"):
        find_target("vulcan")


def test_a_name_like_none_has_no_suggestion() -> None:
    with pytest.raises(ExportError) as caught:
        find_target("zzz")
    assert "did you mean" not in str(caught.value)
