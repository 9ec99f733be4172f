"""Captured programs: torch functions and modules that procedures call, captured once per use.

A use is captured at its first call, and imported after all procedures are traced: only then is it
known which tensors any program changes, so that no reader is given a stale constant.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from iree.compiler.ir import Operation, UnitAttr

from ...capture.arguments import Arguments
from ...capture.program import Program
from ...capture.trace import Capture, capture_call
from ...decompositions.legalize_program import legalize_program
from ...ir.builder import ModuleBuilder
from ...lowering.importer import StateName, import_program
from ...lowering.parameter_names import ProgramTensors
from ..values.current import new_ir_trace_scope


@dataclass(frozen=True)
class Callee:
    """A torch function or module to call, and the options of its capture.

    Attributes:
        function: The function, bound method or module.
        name: Name of its function in the MLIR module.
        key: The identity under which captures are shared; None: the function itself.
        decompositions: The operators to decompose; None: the current table.
        dynamic_shapes: Sizes that are dynamic even if they are static in the call, as for
            `torch.export`.
        state: Prefix of the symbols of its parameters and buffers.
        scalars_as_tensors: Whether traced integers are passed as 0-d tensors, not as integers.
    """

    function: Callable[..., Any]
    name: str
    key: Hashable = None
    decompositions: Mapping[Any, Any] | None = None
    dynamic_shapes: Any = None
    state: str = "__auto"
    scalars_as_tensors: bool = False


class CapturedProgram:
    """A captured program, called by its symbol and imported after all procedures are traced.

    Args:
        symbol: Name of its function in the MLIR module.
        program: The program.
        capture: The capture that it comes from.
        tensors: The names of its tensors.
        state: Prefix of the symbols of its tensors.
        public: Whether it is an entry point.

    Attributes:
        changed: The parameters and buffers that it mutates.
        function: Its function in the MLIR module, once imported.
    """

    def __init__(
        self,
        symbol: str,
        program: Program,
        capture: Capture,
        tensors: ProgramTensors,
        *,
        state: str = "__auto",
        public: bool = False,
    ) -> None:
        self.symbol = symbol
        self.program = program
        self.capture = capture
        self.changed = [tensor for _, tensor in program.mutated_buffers()]
        self.function: Operation | None = None
        self._tensors = tensors
        self._state = state
        self._public = public

    def name_of(self, qualified: str) -> StateName:
        """Return the names of a tensor by its name in the program."""
        name = self._tensors.name_of(qualified)
        return StateName(f"{self._state}.{name.logical}", name.logical)

    def import_into(self, builder: ModuleBuilder, mutable: Sequence[torch.Tensor]) -> None:
        """Add the program to the module as a function.

        Args:
            builder: The module.
            mutable: The tensors that any program of the module mutates.

        Raises:
            UnsupportedOpError: Some operators have no lowering; names all of them.
        """
        self.function = import_program(
            builder,
            self.program,
            name=self.symbol,
            public=self._public,
            mutable=mutable,
            name_of=self.name_of,
            attributes_of=self._tensors.attributes,
        )


class ProgramTable:
    """The captured programs of one module, by callee and argument types.

    Args:
        builder: The module.
    """

    def __init__(self, builder: ModuleBuilder) -> None:
        self._builder = builder
        self._by_key: dict[Hashable, CapturedProgram] = {}
        self._alive: list[Any] = []

    @staticmethod
    def of(builder: ModuleBuilder) -> ProgramTable:
        """Return the table of a module."""
        table = builder.cache.setdefault("programs", ProgramTable(builder))
        assert isinstance(table, ProgramTable)
        return table

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, callee: Callee, arguments: Arguments) -> CapturedProgram:
        """Return the program of a callee for the types of the arguments, captured at most once.

        Raises:
            ExportError: The callee cannot be captured.
        """
        key = (callee.key or callee.function, id(callee.decompositions), *_key_of(arguments))
        found = self._by_key.get(key)
        if found is None:
            self._alive.append((callee, arguments))
            found = self._by_key[key] = self._capture(callee, arguments)
        return found

    def _capture(self, callee: Callee, arguments: Arguments) -> CapturedProgram:
        with new_ir_trace_scope(None):
            captured = capture_call(callee.function, arguments)
            program = legalize_program(
                captured.program,
                callee.decompositions,
                return_changed_inputs=True,
                prefix=captured.prefix,
            )
        owner = getattr(callee.function, "__self__", callee.function)
        module = owner if isinstance(owner, torch.nn.Module) else None
        tensors = ProgramTensors(program, prefix=captured.prefix, module=module)
        symbol = self._builder.reserve_symbol(callee.name)
        return CapturedProgram(symbol, program, captured, tensors, state=callee.state)

    def add(self, program: CapturedProgram) -> None:
        """Add a program that was captured elsewhere."""
        self._by_key[program] = program

    def import_all(self) -> None:
        """Add all programs to the module; tensors that any of them mutates are mutable globals.

        Raises:
            UnsupportedOpError: Some operators have no lowering.
        """
        programs = list(self._by_key.values())
        mutable = [tensor for program in programs for tensor in program.changed]
        for tensor in mutable:
            known = self._builder.globals.get(id(tensor))
            if known is not None:
                known.mutable = True
                known.op.attributes["is_mutable"] = UnitAttr.get(self._builder.context)
        for program in programs:
            program.import_into(self._builder, mutable)


def _key_of(arguments: Arguments) -> Iterator[Hashable]:
    """Yield the parts of a key that is equal for arguments that can share a program."""
    for parameter in arguments.parameters:
        yield parameter.name, parameter.kind, json.dumps(parameter.tree)
    inputs = {leaf.index: leaf for leaf in arguments.inputs}
    for index, leaf in enumerate(arguments.leaves):
        if index in arguments.ties:
            yield "tied", arguments.ties[index]
            continue
        if index not in inputs:
            yield constant_key(leaf)
            continue
        example, axes = inputs[index].example, inputs[index].axes
        if isinstance(example, torch.Tensor):
            shape = enumerate(example.shape)
            yield example.dtype, tuple(None if axis in axes else size for axis, size in shape)
        else:
            yield int


def constant_key(value: Any) -> Hashable:
    """Return a key that is equal for constants that a program cannot tell apart.

    Example:
        >>> constant_key(1) == constant_key(True), constant_key(0.0) == constant_key(-0.0)
        (False, False)
        >>> constant_key(float("nan")) == constant_key(float("nan"))
        True
    """
    if isinstance(value, slice):
        return slice, *map(constant_key, (value.start, value.stop, value.step))
    if isinstance(value, (float, complex)):
        return type(value), repr(value)
    try:
        hash(value)
    except TypeError:
        return id(value)  # unique while the table refers to the arguments
    return type(value), value
