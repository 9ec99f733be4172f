"""Errors of the toolkit, and the error for failing user code."""

from __future__ import annotations

from pelton.aot.spec import errors
from pelton.aot.spec.errors import user_failure


def fails() -> None:
    raise ValueError("too large")


def test_a_failure_names_what_failed_and_the_users_line() -> None:
    try:
        fails()
    except ValueError as error:
        found = user_failure("the pass", error)
    assert "the pass failed: ValueError: too large" in str(found)
    assert found.location is not None
    assert (found.location.file, found.location.line) == (
        __file__, fails.__code__.co_firstlineno + 1,
    )  # fmt: skip


def test_an_error_that_was_not_raised_has_no_line() -> None:
    assert user_failure("it", KeyError("a")).location is None


def test_all_errors_are_of_one_kind() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
    assert all(issubclass(kind, errors.PeltonError) for kind in kinds) and len(kinds) > 8
