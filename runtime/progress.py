"""Where long work says which stage it is in, for whoever shows it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

Listener = Callable[[str], AbstractContextManager[object]]
"""Called with a stage's name; what it returns is entered for as long as the stage lasts."""

Meter = Callable[[str, int, int], None]
"""Called within a stage with what is being done, and how many of how many steps are done."""

_listener: Listener = contextlib.nullcontext
"""One for the process, as there is one terminal; set by `listening` and by nothing else."""

_meter: Meter = lambda what, done, total: None  # noqa: E731
"""Of the same listener."""


@contextlib.contextmanager
def listening(listener: Listener, meter: Meter | None = None) -> Iterator[None]:
    """Have `listener` told of all stages, and `meter` of steps in them, until the block ends.

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
    """Return the block of a stage: `with stage("import"): ...`; silent unless somebody listens."""
    return _listener(name)


def advance(what: str, done: int, total: int) -> None:
    """Tell how far the stage in progress is: `done` of `total` steps of what is being done."""
    _meter(what, done, total)
