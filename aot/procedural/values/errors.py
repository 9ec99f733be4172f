"""What can go wrong while a procedure is traced."""

from __future__ import annotations

from ...spec.errors import ExportError


class ProcedureTraceError(ExportError):
    """A procedure does something that cannot be compiled; names the procedure and the line."""
