"""Contract tests: what a private name of another package must do for Pelton to work."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., None])


def contract(name: str, *, breaks: str) -> Callable[[Test], Test]:
    """Return a decorator for the test of a private name, whose failure says what breaks.

    Args:
        name: The private name, as its own package spells it.
        breaks: What of Pelton stops to work when it changes.
    """

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            try:
                test(*args, **kwargs)
            except Exception as error:
                raise AssertionError(f"{name} changed; what breaks: {breaks}") from error

        return run  # type: ignore[return-value]

    return decorate
