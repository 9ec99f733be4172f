"""How far a module has gone towards the compiler's dialects, and the way from one phase on."""

from __future__ import annotations

import enum

from iree.compiler.ir import Operation

from ..ir.module import is_lowered, run_passes
from ..spec.errors import ExportError
from .custom.expand import expand_custom_ops


class ImportPhase(enum.Enum):
    """How far a module has gone towards the compiler's own dialects."""

    TORCH_IR = 0
    """As traced, with custom operators."""
    CUSTOM_OP_EXPANSION = 1
    """Custom operators replaced by their bodies."""
    IREE_INTERNAL = 2
    """In IREE's input dialects; no longer raisable."""
    IMPORT = 1
    """The usual one."""
    FULL = 2
    """All that happens before compilation."""

    @staticmethod
    def parse(phase: ImportPhase | str | None) -> ImportPhase:
        """Return a phase by name, in any case, with `-` for `_`; None is the usual one.

        Raises:
            ExportError: There is no such phase.

        Example:
            >>> ImportPhase.parse("full") is ImportPhase.IREE_INTERNAL
            True
        """
        if phase is None:
            return ImportPhase.IMPORT
        if isinstance(phase, ImportPhase):
            return phase
        name = str(phase).upper().replace("-", "_")
        if name not in ImportPhase.__members__:
            known = ", ".join(ImportPhase.__members__).lower()
            raise ExportError(f"unknown import phase {phase!r}; known: {known}")
        return ImportPhase[name]


def lower_to(module_op: Operation, import_to: ImportPhase | str | None) -> None:
    """Lower a module to a phase; does nothing where it is there already, or further.

    Raises:
        ExportError: There is no such phase, the lowering failed, or the body of a custom operator
            is wrong.
        UnsupportedOpError: Custom operators have no body; names all of them.
    """
    phase = ImportPhase.parse(import_to)
    if is_lowered(module_op):
        return
    if phase is not ImportPhase.TORCH_IR:
        expand_custom_ops(module_op)
    if phase is ImportPhase.IREE_INTERNAL:
        run_passes(module_op, "builtin.module(torch-to-iree)")
