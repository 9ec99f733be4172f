"""The errors of the toolkit, and the error for user code that failed."""

from __future__ import annotations

from pelton.runtime.errors import (
    ArtifactError,
    CompileError,
    DeviceError,
    DynamicShapeError,
    ExportError,
    IndexOutOfRangeError,
    MissingDependencyError,
    ParameterError,
    PeltonError,
    SignatureError,
    SourceLocation,
    UnsupportedOpError,
)

from .locations import user_location_of

__all__ = [
    "ArtifactError",
    "CompileError",
    "DeviceError",
    "DynamicShapeError",
    "ExportError",
    "IndexOutOfRangeError",
    "MissingDependencyError",
    "ParameterError",
    "PeltonError",
    "SignatureError",
    "SourceLocation",
    "UnsupportedOpError",
    "user_failure",
]


def user_failure(what: str, error: Exception) -> ExportError:
    """Return the error for code of the user's that failed, at the user's line."""
    return ExportError(
        f"{what} failed: {type(error).__name__}: {error}", location=user_location_of(error)
    )
