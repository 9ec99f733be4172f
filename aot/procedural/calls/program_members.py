"""Exported programs of a class: entry points of the module that procedures can call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from pelton.runtime.call import pytrees
from pelton.runtime.call.signature import ConstantSpec
from pelton.runtime.errors import SignatureError

from ...capture.arguments import Arguments, InputLeaf, TracedInput
from ...capture.signature import signature_of_program
from ...capture.trace import Capture
from ...decompositions.legalize_program import legalize_program
from ...ir.builder import ModuleBuilder
from ...lowering.parameter_names import ProgramTensors
from ..globals.live_globals import plain_tree
from ..values.conversions import tensor_of
from ..values.scalars import IrScalar, scalar_of
from ..values.services import TraceServices
from ..values.tensors import IrTensor
from .captured import CapturedProgram, ProgramTable
from .program_calls import emit_program_call


class ProgramMember:
    """An `ExportedProgram` of a class: an entry point unless its name starts with `_`.

    Args:
        builder: The module under construction.
        name: The attribute, and the name of the function.
        exported: The program.

    Raises:
        ExportError: The program cannot be imported.
    """

    def __init__(self, builder: ModuleBuilder, name: str, exported: ExportedProgram) -> None:
        program = legalize_program(exported)
        self.signature = signature_of_program(exported, program, name)
        self._builder = builder
        self._name = name
        # None of a constant either: constants are among the program's outputs.
        results: list[ConstantSpec | None] = [None] * len(self.signature.results)
        arguments = Arguments(self.signature.parameters, [], [])
        tree = self.signature.result_tree
        self._program = program
        self._capture = Capture(exported, arguments, tree, results, "", "")
        public = not name.startswith("_")
        self.entry = self._make(builder.reserve_symbol(name), public=True) if public else None
        self._callee: CapturedProgram | None = None

    def _make(self, symbol: str, *, public: bool) -> CapturedProgram:
        program = self._program
        if not public:  # a procedure stores the new values of inputs that the program changes
            program = legalize_program(self._capture.program, return_changed_inputs=True)
        tensors = ProgramTensors(program)
        return CapturedProgram(symbol, program, self._capture, tensors, public=public)

    def add_to(self, table: ProgramTable) -> None:
        """Add the entry point and the callee, where there are such, to the programs to import."""
        for program in (self.entry, self._callee):
            if program is not None:
                table.add(program)

    def call(self, trace: TraceServices, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Emit a call in a procedure; return its result with traced values in it.

        Args:
            trace: The procedure that calls.
            args: Positional arguments.
            kwargs: Keyword arguments.

        Raises:
            ProcedureTraceError: The arguments do not fit the program's signature.
        """
        if self._callee is None:
            # The torch dialect does not allow calls of entry points: a private copy is called.
            self._callee = self._make(self._builder.reserve_symbol(self._name), public=False)
        return emit_program_call(trace, self._callee, self._arguments(trace, args, kwargs))

    def _arguments(
        self, trace: TraceServices, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Arguments:
        try:
            leaves = self._bind(args, kwargs)
        except (TypeError, SignatureError) as error:
            try:
                leaves = self._bind([list(args)], {})  # one list, given as its entries
            except (TypeError, SignatureError):
                trace.fail(f"calling {self._name}: {error}; it takes {self.signature.python()}")
        inputs: list[InputLeaf] = []
        given: list[Any] = []
        for index, (path, spec) in enumerate(self.signature.named_inputs()):
            if isinstance(spec, ConstantSpec):
                if not _is(leaves[index], spec.value):
                    trace.fail(f"calling {self._name}: argument {path} is fixed to {spec.value!r}")
                given.append(leaves[index])
                continue
            value = self._value(trace, leaves[index], path)
            given.append(TracedInput(value))
            inputs.append(InputLeaf(index, path, 0))
        return Arguments(self.signature.parameters, given, inputs)

    def _value(self, trace: TraceServices, value: Any, path: str) -> IrTensor | IrScalar:
        if isinstance(value, (IrTensor, torch.Tensor)):
            return tensor_of(trace, value, path)
        return scalar_of(trace, value)

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        bound = self.signature.python().bind(*args, **kwargs)
        bound.apply_defaults()
        leaves: list[Any] = [None] * len(self.signature.inputs)
        for parameter in self.signature.parameters:
            value = plain_tree(bound.arguments[parameter.name])
            pytrees.flatten(parameter.tree, value, leaves, parameter.name)
        return leaves


def _is(value: Any, constant: Any) -> bool:
    """Tell whether a value is a constant: by their text, as True equals 1, and nan not itself."""
    return type(value) is type(constant) and repr(value) == repr(constant)
