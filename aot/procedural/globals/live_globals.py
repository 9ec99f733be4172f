"""Globals of a traced procedure: values loaded where they are used, and stored to by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from iree.compiler.ir import FlatSymbolRefAttr, Operation, RankedTensorType, Type, Value

from pelton.runtime.call import pytrees

from ...ir.builder import GlobalAttributes, TensorGlobal
from ...ir.elements import dtype_row
from ..values import tensor_ops
from ..values.affine import Affine
from ..values.conversions import tensor_of, tensor_of_type
from ..values.current import current_ir_trace
from ..values.intrinsics import Intrinsic
from ..values.scalars import IrImmediateScalar, IrScalar, scalar_of_type
from ..values.services import TraceServices
from ..values.tensors import IrImmediateTensor, IrTensor


class Declaration(Protocol):
    """The declaration of a global, as its traced value refers to it.

    Attributes:
        attrs: How the global is initialised, and whether it is mutable.
    """

    attrs: GlobalAttributes


class MaterializedGlobal:
    """A traced value that is loaded from a global and may be stored to.

    Attributes:
        export_name: The attribute that declares it.
        info: The declaration.
        symbol_name: The global's name in the module.
        global_op: Its operation.
        global_type: The type of its contents.
        ir_type: The type of loaded values.
    """

    export_name: str
    info: Declaration
    symbol_name: str
    global_op: Operation
    global_type: Type
    ir_type: Type

    def check_mutable(self, trace: TraceServices) -> None:
        """Refuse a store to an immutable global.

        Raises:
            ProcedureTraceError: The global is immutable.
        """
        if "is_mutable" not in self.global_op.attributes:
            trace.fail(
                f"self.{self.export_name} is immutable and cannot be stored to; declare it with "
                "mutable=True"
            )

    def resolve_assignment(self, proc_trace: TraceServices, ir_values: Sequence[Value]) -> None:
        """Emit a store.

        Raises:
            ProcedureTraceError: The global is immutable.
        """
        self.check_mutable(proc_trace)
        self._emit_store(proc_trace, ir_values[0])
        proc_trace.stored(self.symbol_name)

    def _emit_store(self, trace: TraceServices, value: Value) -> None:
        raise NotImplementedError(f"{type(self).__name__} cannot be stored to")

    def _bind_global(
        self, export_name: str, info: Declaration, symbol: str, op: Operation, type_: Type
    ) -> None:
        self.export_name, self.info, self.symbol_name = export_name, info, symbol
        self.global_op, self.global_type = op, type_


class IrGlobalScalar(MaterializedGlobal, IrScalar):
    """A traced scalar that is loaded from a global, and may be set.

    Args:
        export_name: The attribute that declares it.
        info: The declaration.
        symbol_name: The global's name in the module.
        global_op: Its operation.
        global_type: Its type.
    """

    def __init__(
        self,
        export_name: str,
        info: Declaration,
        *,
        symbol_name: str,
        global_op: Operation,
        global_type: Type,
    ) -> None:
        super().__init__(global_type)
        self._scope = self._trace.root_scope
        self._bind_global(export_name, info, symbol_name, global_op, global_type)

    def resolve_ir_values(self, trace: TraceServices) -> Sequence[Value]:
        """Emit a load; return the value."""
        reference = {"global": FlatSymbolRefAttr.get(self.symbol_name, trace.context)}
        with trace.emitting():
            load = Operation.create(
                "util.global.load", results=[self.global_type], attributes=reference
            )
        value = load.result
        trace.affine_forms[value] = self.affine()
        return [value]

    def affine(self) -> Affine:
        """Return its affine form: loads with no store between them are the same unknown."""
        return Affine.of(self._trace.version_of(self.symbol_name))

    def _emit_store(self, trace: TraceServices, value: Value) -> None:
        reference = {"global": FlatSymbolRefAttr.get(self.symbol_name, trace.context)}
        with trace.emitting():
            Operation.create("util.global.store", operands=[value], attributes=reference)

    def set(self, other: Any) -> None:
        """Store a Python number, or a traced scalar of the global's type.

        Raises:
            ProcedureTraceError: `other` is of another type, or the global is immutable.
        """
        trace = self.trace
        self.check_mutable(trace)
        where = f"self.{self.export_name}"
        self.resolve_assignment(trace, [scalar_of_type(trace, other, self.kind, where)])


class IrGlobalTensor(MaterializedGlobal, IrTensor):
    """A traced tensor that is loaded from a global, and may be stored to as a whole or in part.

    Args:
        export_name: The attribute that declares it.
        info: The declaration.
        symbol_name: The global's name in the module.
        global_op: Its operation.
        global_type: The type of its contents; a byte for each bool.
        dtype: The element type.
    """

    def __init__(
        self,
        export_name: str,
        info: Declaration,
        *,
        symbol_name: str,
        global_op: Operation,
        global_type: Type,
        dtype: torch.dtype,
    ) -> None:
        row = dtype_row(dtype, symbol_name)
        with global_op.context:
            shape = global_type.shape  # type: ignore[attr-defined]
            loaded_type = RankedTensorType.get(shape, Type.parse(row.mlir), loc=global_op.location)
        super().__init__(loaded_type, dtype)
        self._scope = self._trace.root_scope
        self._bind_global(export_name, info, symbol_name, global_op, global_type)
        self.may_alias = frozenset({symbol_name})
        self._tensor_global = TensorGlobal(symbol_name, global_op, global_type, row, mutable=False)

    def resolve_ir_values(self, trace: TraceServices) -> Sequence[Value]:
        """Emit a load; return the value."""
        return [tensor_ops.emit_global_load(trace, self._tensor_global)]

    def _emit_store(self, trace: TraceServices, value: Value) -> None:
        tensor_ops.emit_global_store(trace, self._tensor_global, value)

    def assign(self, value: Any) -> None:
        """Store a tensor of the global's type; contents of another global are copied.

        Raises:
            ProcedureTraceError: `value` is of another type, or the global is immutable.
        """
        trace = self.trace
        self.check_mutable(trace)
        where = f"self.{self.export_name}"
        given = tensor_of(trace, value, where)
        if given is self or (
            isinstance(given, IrGlobalTensor) and given.symbol_name == self.symbol_name
        ):
            return
        stored: IrTensor = IrImmediateTensor(tensor_of_type(trace, given, self, where), self.dtype)
        if not given.may_alias <= self.may_alias:
            stored = tensor_ops.emit_copy(trace, stored)
        self.resolve_assignment(trace, [stored.ir_value])


class LiveGlobalCollectionProxy:
    """A collection of globals: indexing returns traced values, assigning to an index stores.

    Args:
        raw_collection: A dict, list or tuple of traced globals and of such collections.
        path: Its Python expression, for messages.
    """

    def __init__(self, raw_collection: Any, path: str = "self") -> None:
        self._raw = raw_collection
        self._path = path

    @property
    def raw(self) -> Any:
        """The plain collection."""
        return self._raw

    def __getitem__(self, key: Any) -> Any:
        try:
            found = self._raw[key]
        except (KeyError, IndexError, TypeError):
            keys = list(self._raw) if isinstance(self._raw, dict) else range(len(self._raw))
            known = ", ".join(map(repr, keys))
            raise KeyError(f"{self._path} has no {key!r}; it has: {known}") from None
        return live(found, f"{self._path}[{key!r}]")

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key]
        assign_tree(current_ir_trace(), target, value, f"{self._path}[{key!r}]")

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self._raw, dict):
            return iter(self._raw)
        return (self[index] for index in range(len(self._raw)))

    def __contains__(self, key: Any) -> bool:
        return isinstance(self._raw, dict) and key in self._raw

    def keys(self) -> list[Any]:
        """Return the keys."""
        return list(self._raw)

    def values(self) -> list[Any]:
        """Return the members."""
        return [self[key] for key in self._raw]

    def items(self) -> list[tuple[Any, Any]]:
        """Return the keys with the members."""
        return [(key, self[key]) for key in self._raw]

    def __repr__(self) -> str:
        return f"<globals {self._path}: {self._raw!r}>"


def live(value: Any, path: str) -> Any:
    """Return a collection of globals as a proxy, and other values unchanged."""
    is_collection = isinstance(value, (dict, list, tuple))
    return LiveGlobalCollectionProxy(value, path) if is_collection else value


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (Intrinsic, torch.Tensor, LiveGlobalCollectionProxy, Value))


def plain_tree(value: Any) -> Any:
    """Return a tree in which collections of globals are plain containers."""
    tree, leaves = pytrees.describe(value, _is_leaf)
    if not any(isinstance(leaf, LiveGlobalCollectionProxy) for leaf in leaves):
        return value
    plain = [leaf.raw if isinstance(leaf, LiveGlobalCollectionProxy) else leaf for leaf in leaves]
    return pytrees.unflatten(tree, plain)


def assign_tree(trace: TraceServices, target: Any, value: Any, path: str) -> None:
    """Store a tree of values to a global or a collection of globals of the same structure.

    Args:
        trace: The procedure.
        target: The global, or the collection of globals.
        value: The values.
        path: The Python expression of the target, for messages.

    Raises:
        ProcedureTraceError: The structures or types differ, or a global is immutable.
    """
    stores: list[tuple[IrGlobalScalar | IrGlobalTensor, Any]] = []
    _match(trace, target, value, path, stores)
    changed = {entry.symbol_name for entry, _ in stores}
    values = [_before(given, entry.symbol_name, changed) for entry, given in stores]
    for (entry, _), given in zip(stores, values, strict=True):
        if isinstance(entry, IrGlobalScalar):
            entry.set(given)
        else:
            entry.assign(given)


def _before(value: Any, symbol: str, changed: set[str]) -> Any:
    """Return a value as it is before the stores: what another of them changes is loaded now."""
    others = changed - {symbol}
    if isinstance(value, IrGlobalScalar) and value.symbol_name in others:
        return IrImmediateScalar(value.ir_value)
    if isinstance(value, IrGlobalTensor) and value.symbol_name in others:
        return value[...]
    return value


def _match(
    trace: TraceServices,
    target: Any,
    value: Any,
    path: str,
    stores: list[tuple[IrGlobalScalar | IrGlobalTensor, Any]],
) -> None:
    target = target.raw if isinstance(target, LiveGlobalCollectionProxy) else target
    value = value.raw if isinstance(value, LiveGlobalCollectionProxy) else value
    if isinstance(target, (IrGlobalScalar, IrGlobalTensor)):
        stores.append((target, value))
    elif isinstance(target, dict):
        if not isinstance(value, dict) or set(target) != set(value):
            trace.fail(f"{path} is a dict with the keys {list(target)!r}, got {_describe(value)}")
        for key, child in target.items():
            _match(trace, child, value[key], f"{path}[{key!r}]", stores)
    elif isinstance(target, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(value) != len(target):
            trace.fail(f"{path} has {len(target)} entries, got {_describe(value)}")
        for index, (child, entry) in enumerate(zip(target, value, strict=True)):
            _match(trace, child, entry, f"{path}[{index}]", stores)
    else:
        trace.fail(f"{path} cannot be stored to: it is {target!r}")


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return f"a dict with the keys {list(value)!r}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)} entries"
    return repr(value)
