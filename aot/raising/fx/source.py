"""A module to raise: its functions, its globals, and where the values of both come from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import torch
from iree.compiler.ir import FlatSymbolRefAttr, Operation, StringAttr, TypeAttr

from pelton.runtime.archive import ParameterSource, check_parameters, load_parameters
from pelton.runtime.archive.parameter_set import ParameterSet
from pelton.runtime.artifacts.vmfb import ParameterTable
from pelton.runtime.call.dtypes import DTYPES, dtype_of
from pelton.runtime.call.signature import STATE_GET, STATE_SET, Signature

from ...ir.builder import DTYPE_ATTRIBUTE
from ...ir.module import signatures_of
from ...ir.state_accessors import state_name
from ...spec.errors import ExportError, UnsupportedOpError
from .constants import Constants, borrowed, number
from .plain_signature import plain_signature
from .types import number_dtype, tensor_type, torch_dtype

FUNCTIONS = ("func.func", "util.func")

_NAMED_PARAMETER = re.compile(
    r'#flow\.parameter\.named<(?:"(?P<scope>[^"]*)"::)?"(?P<name>[^"]*)">'
)


@dataclass(frozen=True)
class Global:
    """A `util.global`.

    Attributes:
        symbol: Its name in the module.
        name: What users call it; only one mutable global has it.
        op: Its operation.
        shape: The shape of its value.
        dtype: The element type that it stands for.
        storage: The element type that loads give: int8 for a bool, else `dtype`.
        mutable: Whether it may be stored to.
        is_number: Whether it holds a number and no tensor.
        external: Scope and name, where its value comes from an archive.
    """

    symbol: str
    name: str
    op: Operation
    shape: tuple[int, ...]
    dtype: torch.dtype
    storage: torch.dtype
    mutable: bool
    is_number: bool
    external: tuple[str, str] | None


@dataclass
class ModuleSource:
    """A module, with what is needed to raise its functions.

    Attributes:
        module_op: The module.
        constants: Reads the values that stand in it.
        functions: All its functions by name.
        globals: All its globals by name.
        signatures: What each entry point takes and gives.
        initializers: The operations that store to globals before any function runs.
        parameters: The values of external parameters, by scope.
    """

    module_op: Operation
    constants: Constants
    functions: dict[str, Operation]
    globals: dict[str, Global]
    signatures: dict[str, Signature]
    initializers: list[Operation] = field(default_factory=list)
    parameters: Mapping[str, ParameterSet] = field(default_factory=dict)
    _tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    def function(self, name: str) -> Operation:
        """Return a function.

        Raises:
            ExportError: There is none of that name; lists the entry points.
        """
        if name not in self.functions:
            known = ", ".join(self.signatures)
            raise ExportError(f"the module has no function {name!r}; it has {known}")
        return self.functions[name]

    def entry_points(self) -> list[str]:
        """Return the names of the functions that users call."""
        return [name for name in self.signatures if not name.startswith((STATE_GET, STATE_SET))]

    def state(self) -> dict[str, Global]:
        """Return the mutable globals by the names that users give."""
        return {item.name: item for item in self.globals.values() if item.mutable}

    def initial(self, item: Global) -> torch.Tensor:
        """Return the value that a global has at first, in its storage type; read once.

        Raises:
            ParameterError: It comes from an archive, and no archive was given.
        """
        if item.symbol not in self._tensors:
            self._tensors[item.symbol] = self._read(item)
        return self._tensors[item.symbol]

    def initialize(self, item: Global, value: torch.Tensor) -> None:
        """Give a global another value to have at first."""
        self._tensors[item.symbol] = value.to(item.storage)

    def check_parameters(self, used: Iterable[Global]) -> None:
        """Check that the values of external parameters are there and fit.

        Raises:
            ParameterError: Some are missing, or of another type or shape; lists all of them.
        """
        check_parameters(parameter_table(used), self.parameters, allow_unused=True)

    def _read(self, item: Global) -> torch.Tensor:
        if item.external is not None:
            scope, name = item.external
            parameter = self.parameters[scope][name]
            return borrowed(parameter.contents(), item.shape, item.storage)
        if item.is_number:
            value = number(item.op, "initial_value") if _has_value(item.op) else 0
            return torch.tensor(value, dtype=item.storage)
        if not _has_value(item.op):
            return torch.zeros(item.shape, dtype=item.storage)
        return self.constants.tensor(item.op, "initial_value", item.shape, item.storage)


def parameter_table(items: Iterable[Global]) -> ParameterTable:
    """Return element type and shape of the external ones of some globals, by scope and name."""
    table: ParameterTable = {}
    for item in items:
        if item.external is not None:
            row = dtype_of(item.dtype)
            assert row is not None
            table.setdefault(item.external[0], {})[item.external[1]] = (row, item.shape)
    return table


def open_source(
    module_op: Operation,
    *,
    resources: Mapping[str, bytes] | None = None,
    bytecode: memoryview | None = None,
    parameters: ParameterSource | Mapping[str, ParameterSource] | None = None,
) -> ModuleSource:
    """Return a module ready to be raised.

    Args:
        module_op: A `builtin.module`, of a live export or from a file.
        resources: Large data that is at hand, by its name in the module.
        bytecode: The file that the module was parsed from, if that is bytecode.
        parameters: The values of external parameters, as for `runtime.load`.

    Raises:
        ParameterError: The parameters are of no known form.
    """
    functions: dict[str, Operation] = {}
    globals_: dict[str, Global] = {}
    initializers: list[Operation] = []
    for view in module_op.regions[0].blocks[0].operations:
        op = view.operation
        if op.name in FUNCTIONS:
            functions[symbol_of(op)] = op
        elif op.name == "util.initializer":
            initializers.append(op)
        elif op.name == "util.global":
            found = _global(op, {item.name for item in globals_.values() if item.mutable})
            globals_[found.symbol] = found
    signatures = signatures_of(module_op)
    for name, op in functions.items():
        if name not in signatures and _is_public(op):
            signatures[name] = plain_signature(name, op)
    scopes = parameter_table(globals_.values())
    given = load_parameters(parameters, scopes)
    constants = Constants(module_op, resources, bytecode)
    return ModuleSource(module_op, constants, functions, globals_, signatures, initializers, given)


def symbol_of(op: Operation, attribute: str = "sym_name") -> str:
    """Return the symbol that an operation defines, or refers to by an attribute."""
    value = op.attributes[attribute]
    text = value if isinstance(value, StringAttr) else FlatSymbolRefAttr(value)
    return str(text.value)


def _global(op: Operation, taken: Collection[str]) -> Global:
    attributes = op.attributes
    symbol, type_ = symbol_of(op), TypeAttr(attributes["type"]).value
    tensor = tensor_type(type_)
    storage = number_dtype(type_) if tensor is None else tensor.dtype
    shape = () if tensor is None else tensor.shape
    if storage is None or None in shape:
        raise UnsupportedOpError(f"global {symbol} is of type {type_}, which torch lacks")
    dtype = storage
    if DTYPE_ATTRIBUTE in attributes:
        dtype = torch_dtype(DTYPES[StringAttr(attributes[DTYPE_ATTRIBUTE]).value])
    if dtype.itemsize == storage.itemsize and dtype is not torch.bool:
        storage = dtype
    named = _NAMED_PARAMETER.search(str(op)[:4096]) if _has_value(op) else None
    return Global(
        symbol=symbol,
        name=symbol if state_name(symbol) in taken else state_name(symbol),
        op=op,
        shape=tuple(size for size in shape if size is not None),
        dtype=dtype,
        storage=storage,
        mutable="is_mutable" in attributes,
        is_number=tensor is None,
        external=(named["scope"] or "", named["name"]) if named else None,
    )


def _has_value(op: Operation) -> bool:
    if "initial_value" not in op.attributes:
        return False
    try:
        return not str(op.attributes["initial_value"])[:32].startswith("#util.uninitialized")
    except TypeError:  # the bindings refuse elements of complex type
        return True


def _is_public(op: Operation) -> bool:
    attributes = op.attributes
    return (
        "sym_visibility" not in attributes
        or StringAttr(attributes["sym_visibility"]).value == "public"
    )
