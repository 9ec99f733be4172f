"""Modules under construction: the build from the declarations of a class to a verified module."""

from __future__ import annotations

import dataclasses
from typing import Any

from iree.compiler.ir import StringAttr

from ...ir.builder import ModuleBuilder
from ...ir.module import set_signature
from ...ir.state_accessors import add_state_accessors, state_name
from ...lowering.custom.expand import expand_custom_ops
from ...spec.errors import ExportError
from ..calls.captured import CapturedProgram, ProgramTable
from ..calls.program_members import ProgramMember
from .module_decl import ModuleDecl
from .module_state import ModuleState
from .procedures import Procedure
from .signature import signature_of
from .stateful_loops import lower_stateful_control_flow


class ModuleInstance:
    """A module under construction from a `CompiledModule` class.

    Args:
        decl: The declarations of the class.
        builder: The module to build in.

    Attributes:
        decl: The declarations of the class.
        builder: The module.
        state: The globals and callables by attribute, which the procedures share.
        procedures: The entry points by name.
        programs: The exported programs by attribute.
    """

    def __init__(self, decl: ModuleDecl, builder: ModuleBuilder) -> None:
        self.decl = decl
        self.builder = builder
        self.state = ModuleState(decl, builder)
        self.procedures: dict[str, Procedure] = {}
        self.programs: dict[str, ProgramMember] = {}

    def build(self, *, expand: bool = True) -> None:
        """Trace all procedures, import all captured programs, and finish and verify the module.

        Args:
            expand: Whether to replace custom operators by their bodies.

        Raises:
            ExportError: A procedure or program cannot be compiled; has the user's line.
        """
        self._declare()
        for procedure in self.procedures.values():
            procedure.ensure_traced()
        table = ProgramTable.of(self.builder)
        for member in self.programs.values():
            member.add_to(table)
        table.import_all()
        self._attach_signatures()
        if expand:
            expand_custom_ops(self.builder.module_op)
        add_state_accessors(self.builder)
        lower_stateful_control_flow(self.builder)
        self.builder.finalize_construct()

    def _declare(self) -> None:
        """Add the globals, and make the procedures and programs callable by name."""
        for name, info in self.decl.globals.items():
            self.state.globals[name] = info.track(self.builder, name)
        for name, decl in self.decl.procedures.items():
            procedure = Procedure(self.state, decl, name)
            if procedure.name != name:
                raise ExportError(f"{self.decl.cls.__qualname__} exports the name {name!r} twice")
            self.procedures[name] = self.state.callables[name] = procedure
        for name, program in self.decl.programs.items():
            member = ProgramMember(self.builder, name, program)
            self.programs[name] = self.state.callables[name] = member

    def _attach_signatures(self) -> None:
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
        """Return the names of the state that a function mutates, itself or by its calls."""
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
