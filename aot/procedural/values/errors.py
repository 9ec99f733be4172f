"""Errors of a trace."""

from __future__ import annotations

from ...spec.errors import ExportError


class ProcedureTraceError(ExportError):
    """A procedure cannot be compiled; the message names the procedure and the user's line."""
