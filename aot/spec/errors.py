"""The errors of the toolkit, and where in the user's source they come from."""

from __future__ import annotations

import functools
import re
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from pelton.runtime.errors import (
    ArtifactError,
    CompileError,
    DeviceError,
    DynamicShapeError,
    ExportError,
    MissingDependencyError,
    ParameterError,
    PeltonError,
    SignatureError,
    SourceLocation,
    UnsupportedOpError,
)

__all__ = [
    "ArtifactError",
    "CompileError",
    "DeviceError",
    "DynamicShapeError",
    "ExportError",
    "MissingDependencyError",
    "ParameterError",
    "PeltonError",
    "SignatureError",
    "SourceLocation",
    "UnsupportedOpError",
    "is_installed_file",
    "is_user_file",
    "location_in",
    "user_failure",
    "user_location",
    "user_location_of",
    "warn_user",
    "with_lines",
]

_FILE_AND_LINE = re.compile(r'"([^"]+)":(\d+)')
_OWN_FOLDER = str(Path(__file__).parent.parent)
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_INSTALLED = re.compile(r"/(?:site|dist)-packages/([^/]+)")  # in whatever environment or home
_MOST_PLACES = 3
_MACHINERY = ("torch", "iree", "numpy", "sympy", "pelton", "_pytest", "pluggy")


@functools.lru_cache(maxsize=4096)
def is_user_file(name: str) -> bool:
    """Tell whether a source file belongs to the program: not ours, not torch's, not Python's.

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
    """Tell whether a source file belongs to an installed package.

    Example:
        >>> is_installed_file("/home/me/model.py"), is_installed_file(torch.__file__)
        (False, True)
    """
    return _INSTALLED.search(name) is not None


def location_in(text: str) -> SourceLocation | None:
    """Return the first place in user code that the text of an MLIR location names.

    Example:
        >>> print(location_in('loc("/home/me/model.py":7:3)'))
        /home/me/model.py:7
    """
    for file, line in _FILE_AND_LINE.findall(text):
        if is_user_file(file):
            return SourceLocation(file, int(line))
    return None


def with_lines(found: Iterable[tuple[str, SourceLocation | None]]) -> dict[str, str]:
    """Return each name once, in order, with the first places where it stands, for messages.

    Example:
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


def user_failure(what: str, error: Exception) -> ExportError:
    """Return the error for code of the user's that failed, at the user's line."""
    return ExportError(
        f"{what} failed: {type(error).__name__}: {error}", location=user_location_of(error)
    )


def user_location(frame: FrameType | None = None) -> SourceLocation | None:
    """Return the innermost place in user code on the stack of `frame` (default: the caller's)."""
    frame = frame or sys._getframe(1)
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


def warn_user(message: str) -> None:
    """Warn about something in the user's program, at the user's own line."""
    location = user_location()
    if location is None:
        warnings.warn(message, UserWarning, stacklevel=2)
    else:
        warnings.warn_explicit(message, UserWarning, location.file, location.line)
