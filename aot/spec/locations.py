"""Source locations: the user's line of an fx node, an MLIR operation, a function, an exception.

torch keeps the stack of a traced call as text in the form of Python's tracebacks; MLIR prints a
location as `"file":line:column`. Both texts are read here and nowhere else.
"""

from __future__ import annotations

import functools
import re
import sysconfig
import traceback
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from iree.compiler.ir import Operation

from pelton.runtime.errors import SourceLocation

from ..compat.interpreter import calling_frame

_MLIR_LOCATION = re.compile(r'"([^"]+)":(\d+)')
_OPERATOR = re.compile(r"target=torch\.ops\.([\w.]+)")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_OWN_FOLDER = str(Path(__file__).parents[1])
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_INSTALLED = re.compile(r"/(?:site|dist)-packages/([^/]+)")  # in whatever environment or home
_MOST_PLACES = 3
_MACHINERY = ("torch", "iree", "numpy", "sympy", "pelton", "_pytest", "pluggy")

LOCATION = "pelton.location"
"""Key of an fx node's `meta` for the location of the MLIR operation that it was raised from."""


@functools.lru_cache(maxsize=4096)
def is_user_file(name: str) -> bool:
    """Return whether a source file belongs to the program: not ours, not torch's, not Python's.

    Installed packages that define models (such as transformers) count as the user's.

    Example:
        >>> is_user_file("/home/me/model.py"), is_user_file(torch.__file__)
        (True, False)
    """
    if name.startswith(("<", _OWN_FOLDER)):
        return False
    installed = _INSTALLED.search(name)
    if installed is not None:
        return installed[1].removesuffix(".py") not in _MACHINERY
    return not name.startswith(_STANDARD_LIBRARY + "/")


def is_installed_file(name: str) -> bool:
    """Return whether a source file belongs to an installed package.

    Example:
        >>> is_installed_file("/home/me/model.py"), is_installed_file(torch.__file__)
        (False, True)
    """
    return _INSTALLED.search(name) is not None


def location_in_mlir(text: str) -> SourceLocation | None:
    """Return the first location in user code that the text of an MLIR location names.

    Example:
        >>> print(location_in_mlir('loc("/home/me/model.py":7:3)'))
        /home/me/model.py:7
    """
    for file, line in _MLIR_LOCATION.findall(text):
        if is_user_file(file):
            return SourceLocation(file, int(line))
    return None


def location_in_trace(text: str | None) -> SourceLocation | None:
    """Return the innermost location in user code of a stack trace, the last one in its text.

    Example:
        >>> print(location_in_trace('File "/home/me/model.py", line 7, in forward'))
        /home/me/model.py:7
    """
    for file, line in reversed(_FRAME.findall(text or "")):
        if is_user_file(file):
            return SourceLocation(file, int(line))
    return None


def operator_in_trace(text: str | None) -> str | None:
    """Return the torch operator of the first call of a graph that a text describes.

    Example:
        >>> operator_in_trace("call_function[target=torch.ops.aten.add.Tensor](args = (%x, %x))")
        'aten.add.Tensor'
    """
    found = _OPERATOR.search(text or "")
    return found[1] if found else None


def location_of_node(node: torch.fx.Node) -> SourceLocation | None:
    """Return the user's line of a node of an fx graph, traced by torch or raised from MLIR."""
    noted = node.meta.get(LOCATION)
    if isinstance(noted, SourceLocation):
        return noted
    return location_in_trace(node.stack_trace)


def location_of_op(op: Operation) -> SourceLocation | None:
    """Return the user's line of an MLIR operation."""
    return location_in_mlir(str(op.location))


def location_of_function(function: Any) -> SourceLocation | None:
    """Return the line where a function or method is defined; None for one not made in Python.

    Example:
        >>> location_of_function(len) is None, location_of_function(lambda: 0).line > 0
        (True, True)
    """
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if not isinstance(code, CodeType):
        return None
    return SourceLocation(code.co_filename, code.co_firstlineno)


def user_location(frame: FrameType | None = None) -> SourceLocation | None:
    """Return the innermost place in user code on the stack of `frame` (default: the caller's)."""
    frame = frame or calling_frame(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return SourceLocation(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def user_location_of(error: BaseException) -> SourceLocation | None:
    """Return the innermost place in user code that `error` passed through."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_user_file(frame.filename) and frame.lineno is not None:
            return SourceLocation(frame.filename, frame.lineno)
    return None


def with_lines(found: Iterable[tuple[str, SourceLocation | None]]) -> dict[str, str]:
    """Return each name once, in order, with the first places where it stands, for messages.

    Example:
        >>> from pelton.runtime.errors import SourceLocation
        >>> with_lines([("aten.a", SourceLocation("m.py", 3)), ("aten.b", None), ("aten.a", None)])
        {'aten.a': 'aten.a (at m.py:3)', 'aten.b': 'aten.b'}
    """
    places: dict[str, list[str]] = {}
    for name, location in found:
        known = places.setdefault(name, [])
        if location is not None and str(location) not in known:
            known.append(str(location))
    return {
        name: f"{name} (at {', '.join(known[:_MOST_PLACES])})" if known else name
        for name, known in places.items()
    }


def warn_user(message: str) -> None:
    """Warn about something in the user's program, at the user's own line."""
    location = user_location()
    if location is None:
        warnings.warn(message, UserWarning, stacklevel=2)
    else:
        warnings.warn_explicit(message, UserWarning, location.file, location.line)
