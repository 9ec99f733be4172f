"""The state of a module under construction: its declaration, builder, globals and callables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...ir.builder import ModuleBuilder
from ..values.services import TraceServices
from .module_decl import ModuleDecl


class ModuleCallable(Protocol):
    """A procedure or exported program of the class, as other procedures call it."""

    def call(self, trace: TraceServices, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Emit a call in a procedure; return its result with traced values in it.

        Args:
            trace: The procedure that calls.
            args: Positional arguments.
            kwargs: Keyword arguments.
        """


@dataclass(frozen=True)
class ModuleState:
    """The parts of a module under construction that its procedures use.

    Attributes:
        decl: The declarations of the class.
        builder: The module.
        globals: The globals of each declaration, in its structure, by attribute.
        callables: The procedures and exported programs, by attribute.
    """

    decl: ModuleDecl
    builder: ModuleBuilder
    globals: dict[str, Any] = field(default_factory=dict)
    callables: dict[str, ModuleCallable] = field(default_factory=dict)
