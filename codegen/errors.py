"""Errors of a compile with IREE."""

from __future__ import annotations


class CompilerFailed(Exception):
    """The compiler refused a module, or crashed.

    Args:
        diagnostics: All diagnostics of the compiler.
    """

    def __init__(self, diagnostics: str) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


class CompilerTimedOut(Exception):
    """The compiler was ended, as it took longer than it may; its verdict is not known."""
