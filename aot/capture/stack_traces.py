"""Stack traces of traced operators: the user's lines, in any function.

torch records the Python stack of each operator, but drops all frames except those of methods named
`forward`, and spends a sixth of the time of a trace formatting them. During our traces it records
the frames of the user's files below our adapter instead.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import CodeType, FrameType

from ..compat.interpreter import calling_frame
from ..compat.tracing import stack_traces_of
from ..spec.locations import is_user_file


def program_lines(adapter: CodeType) -> AbstractContextManager[None]:
    """Let traces note the lines of the program within a `with` block.

    Args:
        adapter: The code that calls the program.
    """
    return stack_traces_of(lambda: _lines_within(adapter))


def _lines_within(adapter: CodeType) -> list[str]:
    """Return the frames of the program that runs, outermost first; none outside its adapter.

    Args:
        adapter: The code whose callees are the program; frames outside it are not the program's.
    """
    frame: FrameType | None = calling_frame()
    lines: list[str] = []
    while frame is not None:
        code = frame.f_code
        if code is adapter:
            lines.reverse()
            return lines
        if is_user_file(code.co_filename):
            place = f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'
            lines.append(f"  {place}\n")
        frame = frame.f_back
    return []
