"""Progress reports: the stage and the steps of long work, for a listener that shows them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

Listener = Callable[[str], AbstractContextManager[object]]
"""Called with a stage's name; returns a context manager that is entered during the stage."""

Meter = Callable[[str, int, int], None]
"""Called within a stage with the name of a step, and the numbers of done and of all steps."""

_listener: Listener = contextlib.nullcontext
"""The listener of the process, which has one terminal; set only by `listening`."""

_meter: Meter = lambda what, done, total: None  # noqa: E731
"""The meter of the same listener."""


@contextlib.contextmanager
def listening(listener: Listener, meter: Meter | None = None) -> Iterator[None]:
    """Report all stages to `listener`, and their steps to `meter`, until the block ends.

    Example:
        >>> names = []
        >>> with listening(lambda name: contextlib.nullcontext(names.append(name))):
        ...     with stage("torch.export"):
        ...         pass
        >>> names
        ['torch.export']
    """
    global _listener, _meter
    before = _listener, _meter
    _listener, _meter = listener, meter or _meter
    try:
        yield
    finally:
        _listener, _meter = before


def stage(name: str) -> AbstractContextManager[object]:
    """Return the context manager of a stage, as in `with stage("import"): ...`."""
    return _listener(name)


def advance(what: str, done: int, total: int) -> None:
    """Report the progress within the current stage.

    Args:
        what: The name of the steps.
        done: How many are done.
        total: How many there are.
    """
    _meter(what, done, total)
