"""The façade for extensions: all the documented names, and each is what it is elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from pelton.aot.support import procedural

NAMES = Path(__file__).with_name("procedural_names.txt").read_text().split()


@pytest.mark.parametrize("name", NAMES)
def test_a_documented_name_is_there(name: str) -> None:
    assert getattr(procedural, name).__doc__ is None or getattr(procedural, name)


def test_the_list_of_names_is_complete() -> None:
    assert sorted(NAMES) == sorted(procedural.__all__)


def test_nothing_is_defined_in_the_facade() -> None:
    own = [
        name for name in NAMES
        if getattr(getattr(procedural, name), "__module__", "") == procedural.__name__
    ]  # fmt: skip
    assert own == []
