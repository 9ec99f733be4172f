"""Errors of a compile with IREE: they cross between processes with what they say."""

from __future__ import annotations

import pickle

import pytest

from pelton.codegen.errors import CompilerFailed, CompilerTimedOut


@pytest.mark.parametrize(
    "error", [CompilerFailed("m.mlir:1: no\nsuch op"), CompilerTimedOut("9 s")]
)
def test_an_error_is_the_same_after_it_was_pickled(error: Exception) -> None:
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is type(error)
    assert (str(copied), vars(copied)) == (str(error), vars(error))


def test_a_refusal_has_all_diagnostics() -> None:
    assert CompilerFailed("a\nb").diagnostics == str(CompilerFailed("a\nb")) == "a\nb"


def test_a_compiler_that_ran_out_of_time_has_not_failed() -> None:
    assert not issubclass(CompilerTimedOut, CompilerFailed)
