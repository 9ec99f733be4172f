"""Stack traces that torch notes at the nodes of a trace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch.fx import proxy


class _Lines(list[str]):
    """A stack that is formatted already, as torch's tracer reads one."""

    def format(self) -> list[str]:
        return self


class _Stack:
    """Stands in for `CapturedTraceback`."""

    def __init__(self, lines: Callable[[], list[str]]) -> None:
        self._lines = lines

    def extract(self, **_: Any) -> _Stack:
        return self

    def summary(self) -> _Lines:
        return _Lines(self._lines())


def _unfiltered(_: proxy.TracerBase, stack: _Lines) -> _Lines:
    return stack


@contextlib.contextmanager
def stack_traces_of(lines: Callable[[], list[str]]) -> Iterator[None]:
    """Let torch's tracers note other stack traces than their own within a `with` block.

    Args:
        lines: Returns the formatted lines of the stack, outermost first. It is called for each
            node, in the stack that the node is made in.
    """
    tracer: Any = proxy.TracerBase
    module: Any = proxy
    captured, filtered = module.CapturedTraceback, tracer._filter_traceback_frames
    module.CapturedTraceback = _Stack(lines)
    tracer._filter_traceback_frames = _unfiltered
    try:
        yield
    finally:
        module.CapturedTraceback = captured
        tracer._filter_traceback_frames = filtered
