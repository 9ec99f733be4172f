"""Stack traces of traced operators: the user's lines, in any function.

torch records the Python stack of each operator, but drops all frames except those of methods named
`forward`, and spends a sixth of the time of a trace formatting them. During our traces it records
the frames of the user's files below our adapter instead.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import torch.fx.proxy
from torch.fx.proxy import TracerBase

from ..spec.locations import is_user_file


class _Lines(list[str]):
    """A stack as torch's tracer wants one: already formatted."""

    def format(self) -> list[str]:
        return self


class _UserStack:
    """Stands in for torch's captured traceback.

    Args:
        adapter: The code whose callees are the program; frames outside it are not the program's.
    """

    def __init__(self, adapter: CodeType) -> None:
        self._adapter = adapter

    def extract(self, **_: Any) -> _UserStack:
        return self

    def summary(self) -> _Lines:
        """Return the frames of the program, outermost first; none outside the adapter."""
        frame: FrameType | None = sys._getframe(1)
        lines = _Lines()
        while frame is not None:
            code = frame.f_code
            if code is self._adapter:
                lines.reverse()
                return lines
            if is_user_file(code.co_filename):
                place = f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'
                lines.append(f"  {place}\n")
            frame = frame.f_back
        return _Lines()


def _keep(tracer: TracerBase, lines: _Lines) -> _Lines:
    return lines


@contextlib.contextmanager
def program_lines(adapter: CodeType) -> Iterator[None]:
    """Let traces note the lines of the program within a `with` block.

    Args:
        adapter: The code that calls the program.
    """
    with (
        mock.patch.object(torch.fx.proxy, "CapturedTraceback", _UserStack(adapter)),
        mock.patch.object(TracerBase, "_filter_traceback_frames", _keep),
    ):
        yield
