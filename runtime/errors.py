"""Errors of Pelton: one class for each cause.

Every message names the object, what was expected, what was given, and what to do. Each class is
also the builtin exception that fits, so that `except ValueError` works as well.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """A place in the user's source: file name and line (1 is the first line)."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class PeltonError(Exception):
    """Base of all errors of Pelton.

    Args:
        message: One or more sentences for the person who can fix it.
        location: The user's file and line that the error is about, if known.
    """

    def __init__(self, message: str, *, location: SourceLocation | None = None) -> None:
        super().__init__(f"{message} (at {location})" if location else message)
        self.location = location


class ExportError(PeltonError, TypeError, ValueError):
    """A program cannot be exported: a wrong kind of object, argument or option."""


class DynamicShapeError(ExportError):
    """A size cannot be dynamic as requested, or its bounds are wrong."""


class UnsupportedOpError(ExportError, NotImplementedError):
    """A program uses operators that the toolkit or the target does not support.

    Args:
        message: Names all the operators at once.
        operators: The operators' names, such as `aten.foo.default`.
    """

    def __init__(
        self,
        message: str,
        *,
        operators: tuple[str, ...] = (),
        location: SourceLocation | None = None,
    ) -> None:
        super().__init__(message, location=location)
        self.operators = operators


class CompileError(PeltonError, RuntimeError):
    """A compiler failed.

    Args:
        message: What failed, with the first diagnostic.
        diagnostics: All diagnostics of the compiler.
        reproducer: Path of a file that reproduces the failure, or None.
        operators: Names of the operators that could not be lowered.
    """

    def __init__(
        self,
        message: str,
        *,
        diagnostics: str = "",
        reproducer: str | None = None,
        operators: tuple[str, ...] = (),
        location: SourceLocation | None = None,
    ) -> None:
        super().__init__(message, location=location)
        self.diagnostics = diagnostics
        self.reproducer = reproducer
        self.operators = operators


class SignatureError(PeltonError, TypeError, ValueError):
    """A call does not fit the signature of the function: count, name, type, rank, size or range."""


class IndexOutOfRangeError(PeltonError, IndexError):
    """An index of a call is none of the dimension that it is for; what was returned is dropped."""


INDEX_OUT_OF_RANGE = "index out of range in "
"""How the message of a program's check of its indices begins."""


class ParameterError(PeltonError, ValueError):
    """Parameters (weights) are missing, unknown, or of another type or shape than needed."""


class ArtifactError(PeltonError, ValueError):
    """A file is empty, truncated, damaged, or of another format or version."""


class DeviceError(PeltonError, RuntimeError):
    """A device is missing, or cannot run the program."""


class MissingDependencyError(PeltonError, ImportError):
    """An optional package is needed and not installed; the message gives the pip command."""
