"""A module under construction from a `CompiledModule` class."""

from __future__ import annotations

import dataclasses
from typing import Any

from iree.compiler.ir import StringAttr

from ...ir.builder import ModuleBuilder
from ...ir.input_aliasing import mark_input_aliasing
from ...ir.module import set_signature
from ...ir.state_accessors import add_state_accessors, state_name
from ...lowering.custom.expand import expand_custom_ops
from ...spec.errors import ExportError
from ..calls.program_members import ProgramMember
from ..calls.programs import CapturedProgram, ProgramTable
from .module_decl import ModuleDecl
from .procedures import Procedure
from .signature import signature_of
from .stateful_loops import lower_stateful_control_flow
from .trace import IrTrace
from .view import ProcedureSelf


class ModuleInstance:
    """A module under construction: what its class declares, and what became of it.

    Args:
        decl: What the class declares.
        builder: The module to build in.

    Attributes:
        decl: What the class declares.
        builder: The module.
        globals: The globals of each declaration, in its structure, by attribute.
        procedures: The entry points by name.
        programs: The `ExportedProgram`s by attribute.
        specialised: Procedures for calls with other constants than the declared ones.
    """

    def __init__(self, decl: ModuleDecl, builder: ModuleBuilder) -> None:
        self.decl = decl
        self.builder = builder
        self.globals: dict[str, Any] = {}
        self.procedures: dict[str, Procedure] = {}
        self.programs: dict[str, ProgramMember] = {}
        self.specialised: list[Procedure] = []

    def build(self, *, expand: bool = True) -> None:
        """Trace all procedures, then import all programs, and finish the module.

        Args:
            expand: Replace custom operators by their bodies.

        Raises:
            ExportError: Something cannot be compiled; names it and the user's line.
        """
        for name, info in self.decl.globals.items():
            self.globals[name] = info.track(self.builder, name)
        for name, decl in self.decl.procedures.items():
            self.procedures[name] = Procedure(self, decl, name)
            if self.procedures[name].name != name:
                raise ExportError(f"{self.decl.cls.__qualname__} exports the name {name!r} twice")
        for name, program in self.decl.programs.items():
            self.programs[name] = ProgramMember(self.builder, name, program)
        for procedure in self.procedures.values():
            procedure.ensure_traced()
        table = ProgramTable.of(self.builder)
        for member in self.programs.values():
            member.enter(table)
        table.import_all()
        self._state_signatures()
        if expand:
            expand_custom_ops(self.builder.module_op)
        add_state_accessors(self.builder)
        mark_input_aliasing(self.builder)
        lower_stateful_control_flow(self.builder)
        self.builder.finalize_construct()

    def view(self, trace: IrTrace) -> ProcedureSelf:
        """Return the `self` of a procedure."""
        return ProcedureSelf(self, trace)

    def _state_signatures(self) -> None:
        for procedure in self.procedures.values():
            signature = signature_of(procedure, self._mutates(procedure))
            function = procedure.trace.func_op.operation
            set_signature(function, signature)
        for member in self.programs.values():
            if member.entry is not None and member.entry.function is not None:
                signature = dataclasses.replace(
                    member.signature, mutates=self._mutates(member.entry)
                )
                set_signature(member.entry.function, signature)

    def _mutates(self, function: Procedure | CapturedProgram) -> tuple[str, ...]:
        """Return the names of the state that a function changes, itself or by what it calls."""
        symbols: set[str] = set()
        seen: set[int] = set()
        waiting: list[Any] = [function]
        while waiting:
            callee = waiting.pop()
            if id(callee) in seen:
                continue
            seen.add(id(callee))
            if isinstance(callee, CapturedProgram):
                symbols.update(self.builder.globals[id(t)].symbol for t in callee.changed)
            else:
                symbols |= callee.trace.stores
                waiting.extend(callee.trace.callees)
        return tuple(state_name(symbol) for symbol in self._in_order(symbols))

    def _in_order(self, symbols: set[str]) -> list[str]:
        operations = self.builder.body.operations
        named = (op.attributes["sym_name"] for op in operations if "sym_name" in op.attributes)
        return [name for name in (StringAttr(n).value for n in named) if name in symbols]
