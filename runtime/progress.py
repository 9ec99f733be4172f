"""Where long work says which stage it is in, for whoever shows it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

Listener = Callable[[str], AbstractContextManager[object]]
"""Called with a stage's name; what it returns is entered for as long as the stage lasts."""

_listener: Listener = contextlib.nullcontext
"""One for the process, as there is one terminal; set by `listening` and by nothing else."""


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have `listener` told of all stages until the block ends.

    Example:
        >>> names = []
        >>> with listening(lambda name: contextlib.nullcontext(names.append(name))):
        ...     with stage("torch.export"):
        ...         pass
        >>> names
        ['torch.export']
    """
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


def stage(name: str) -> AbstractContextManager[object]:
    """Return the block of a stage: `with stage("import"): ...`; silent unless somebody listens."""
    return _listener(name)
