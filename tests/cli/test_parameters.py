"""`--parameters`: archives with and without scopes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from pelton.cli.parameters import add_parameters_option, parameters_of
from pelton.runtime.errors import ParameterError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], None),
        (["a.irpa", "b.irpa"], ["a.irpa", "b.irpa"]),
        (["m=a.irpa", "n=b.irpa", "m=c.irpa"], {"m": ["a.irpa", "c.irpa"], "n": ["b.irpa"]}),
        (["m=a=b.irpa"], {"m": ["a=b.irpa"]}),
        (["=a.irpa"], {"": ["a.irpa"]}),
    ],
    ids=["none", "plain", "scopes", "equals", "no_name"],
)
def test_archives_have_all_a_scope_or_none(given: list[str], expected: Any) -> None:
    assert parameters_of(given) == expected


def test_a_file_whose_name_has_an_equals_sign_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lr=1.irpa").touch()
    assert parameters_of(["lr=1.irpa"]) == ["lr=1.irpa"]
    assert parameters_of(["m=lr=1.irpa"]) == {"m": ["lr=1.irpa"]}


@pytest.mark.parametrize("given", [["a.irpa", "m=b.irpa"], ["m=b.irpa", "a.irpa"]], ids=str)
def test_a_mixture_is_refused_in_any_order(given: list[str]) -> None:
    with pytest.raises(ParameterError, match=r"--parameters a\.irpa has no scope and others have"):
        parameters_of(given)


def test_the_option_may_be_repeated_and_left_out() -> None:
    parser = argparse.ArgumentParser()
    add_parameters_option(parser)
    assert parser.parse_args(["--parameters", "a", "--parameters", "b"]).parameters == ["a", "b"]
    assert parser.parse_args([]).parameters == []
    assert parser.parse_args(["--parameters", "a"]).parameters == ["a"]
    assert parser.parse_args([]).parameters == []
