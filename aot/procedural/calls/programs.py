"""Torch functions and modules that procedures call: captured once per distinct use.

A use is captured when it is first met, and imported only when all procedures are traced: by then
it is known which tensors any of them changes, so that no reader is given a stale constant.
"""

from __future__ import annotations

import dataclasses
import json
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from iree.compiler.ir import Operation, UnitAttr

from pelton.runtime.call import pytrees

from ...capture.arguments import Arguments, TracedInput, flatten_arguments
from ...capture.program import Program
from ...capture.trace import Capture, capture_call
from ...decompositions.legalize_program import legalize_program
from ...ir.builder import ModuleBuilder
from ...lowering.importer import StateName, import_program
from ...lowering.parameter_names import ProgramTensors
from ...spec.errors import ExportError
from ..globals.live_globals import IrGlobalTensor, plain_tree
from ..values.arithmetic import is_float
from ..values.current import new_ir_trace_scope
from ..values.scalars import IrScalar
from ..values.tensors import IrTensor
from .program_calls import emit_program_call

if TYPE_CHECKING:
    from ..module.trace import IrTrace

_EXAMPLE_SIZES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83)
"""Sizes to trace dynamic dimensions with; one that no static dimension of the call has."""


@dataclass(frozen=True)
class Callee:
    """A torch function or module to call, and how it is captured.

    Attributes:
        function: The function, bound method or module.
        name: Name of its function in the MLIR module.
        key: What distinguishes it from others; default: the function itself.
        decompositions: The operators to decompose; None: the current table.
        dynamic_shapes: Which sizes are dynamic even if they are known, as for `torch.export`.
        state: Prefix of the symbols of its parameters and buffers.
        tensors_of_numbers: Pass traced integers as 0-d tensors, not as Python integers.
    """

    function: Callable[..., Any]
    name: str
    key: Hashable = None
    decompositions: Mapping[Any, Any] | None = None
    dynamic_shapes: Any = None
    state: str = "__auto"
    tensors_of_numbers: bool = False


class CapturedProgram:
    """A captured program: called by its name, imported later.

    Args:
        symbol: Name of its function in the MLIR module.
        program: The program.
        capture: What it was captured as.
        tensors: The names of its tensors.
        state: Prefix of the symbols of its tensors.
        public: Whether it is an entry point.

    Attributes:
        changed: The tensors of the module that it changes.
        function: Its function, once imported.
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
            mutable: The tensors that any program of the module changes.

        Raises:
            UnsupportedOpError: Operators without a lowering; all of them.
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
    """The programs that the procedures of one module call.

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
        """Return the program of a callee for arguments of certain types, captured at most once.

        Raises:
            ExportError: It cannot be captured.
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
                captured.program, callee.decompositions, return_changed_inputs=True
            )
        owner = getattr(callee.function, "__self__", callee.function)
        module = owner if isinstance(owner, torch.nn.Module) else None
        tensors = ProgramTensors(program, prefix=captured.prefix, module=module)
        symbol = self._builder.reserve_symbol(callee.name)
        return CapturedProgram(symbol, program, captured, tensors, state=callee.state)

    def add(self, program: CapturedProgram) -> None:
        """Enter a program that was captured elsewhere."""
        self._by_key[program] = program

    def import_all(self) -> None:
        """Add all programs to the module, with the tensors mutable that any of them changes.

        Raises:
            UnsupportedOpError: Operators without a lowering.
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


def call_function(
    trace: IrTrace, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Emit a call of a torch function with traced values among its arguments.

    Raises:
        ProcedureTraceError: torch refuses the arguments.
    """
    name = getattr(function, "__name__", "function").strip("_").replace("<lambda>", "lambda")
    is_operator = getattr(operator, getattr(function, "__name__", ""), None) is function
    return call(trace, Callee(function, name, tensors_of_numbers=is_operator), args, kwargs)


def call(trace: IrTrace, callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Emit a call of a torch function or module; return its result with traced values in it.

    Raises:
        ExportError: It cannot be captured with such arguments.
    """
    try:
        arguments = _take_apart(trace, callee, args, kwargs)
        found = ProgramTable.of(trace.module_builder).find(callee, arguments)
    except ExportError as error:
        if error.location is not None:
            raise
        trace.fail(f"calling {callee.name}: {error}")
    return emit_program_call(trace, found, arguments)


def _take_apart(
    trace: IrTrace, callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Arguments:
    """Bind the arguments of a call, with traced values as inputs."""
    given = plain_tree([list(args), dict(kwargs)])
    tree, leaves = pytrees.describe(given, _is_leaf)
    tensors = {
        index: trace.tensor(leaf, "an argument")
        for index, leaf in enumerate(leaves)
        if isinstance(leaf, (IrTensor, torch.Tensor)) or _is_tensor_number(leaf, callee)
    }
    size = _example_size(list(tensors.values()))
    inputs = [_traced_input(tensors.get(index, leaf), size) for index, leaf in enumerate(leaves)]
    args, kwargs = pytrees.unflatten(tree, inputs)
    arguments = flatten_arguments(_callable(callee.function), args, kwargs, callee.dynamic_shapes)
    return _tie_globals(arguments)


def _tie_globals(arguments: Arguments) -> Arguments:
    """Pass a global that is given several times once, as one tensor: tied weights stay tied."""
    first: dict[str, int] = {}
    inputs = []
    for leaf in arguments.inputs:
        value = arguments.leaves[leaf.index].value
        symbol = value.symbol_name if isinstance(value, IrGlobalTensor) else str(id(leaf))
        known = first.setdefault(symbol, leaf.index)
        if known == leaf.index:
            inputs.append(leaf)
        else:
            arguments.ties[leaf.index] = known
    return dataclasses.replace(arguments, inputs=inputs)


def _callable(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.forward if isinstance(function, torch.nn.Module) else function


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (IrTensor, IrScalar, torch.Tensor))


def _is_tensor_number(value: Any, callee: Callee) -> bool:
    if not isinstance(value, IrScalar):
        return False
    return callee.tensors_of_numbers or is_float(value.kind) or value.kind == "i1"


def _example_size(tensors: Sequence[IrTensor]) -> int:
    static = {size for tensor in tensors for size in tensor.type_shape}
    return next((size for size in _EXAMPLE_SIZES if size not in static), 97)


def _traced_input(value: Any, size: int) -> Any:
    if isinstance(value, IrScalar):
        return TracedInput(value, size=size)
    if not isinstance(value, IrTensor):
        return value
    shape = tuple(None if extent < 0 else extent for extent in value.type_shape)
    return TracedInput(value, value.dtype, shape, size)


def _key_of(arguments: Arguments) -> Iterator[Hashable]:
    """Yield what distinguishes arguments that need a program of their own."""
    for parameter in arguments.parameters:
        yield parameter.name, parameter.kind, json.dumps(parameter.tree)
    inputs = {leaf.index: leaf for leaf in arguments.inputs}
    for index, leaf in enumerate(arguments.leaves):
        if index in arguments.ties:
            yield "tied", arguments.ties[index]
            continue
        if index not in inputs:
            yield _constant_key(leaf)
            continue
        example, axes = inputs[index].example, inputs[index].axes
        if isinstance(example, torch.Tensor):
            shape = enumerate(example.shape)
            yield example.dtype, tuple(None if axis in axes else size for axis, size in shape)
        else:
            yield int


def _constant_key(value: Any) -> Hashable:
    if isinstance(value, slice):
        return slice, value.start, value.stop, value.step
    try:
        hash(value)
    except TypeError:
        return id(value)  # the table keeps it alive
    return type(value), value
