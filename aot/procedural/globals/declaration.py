"""Declarations of globals: the base class, which adds the globals to a module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from iree.compiler.ir import FloatAttr, IntegerAttr, Location, Operation, Type

from ...compat.pytrees import TreeSpec, tree_unflatten
from ...ir.builder import GlobalAttributes, ModuleBuilder
from ...ir.elements import dtype_row, global_type
from ...spec.errors import ExportError
from .live_globals import IrGlobalScalar, IrGlobalTensor
from .types import AbstractScalar, AbstractTensor, scalar_type_of


@dataclass(frozen=True)
class TrackedGlobal:
    """A global of the module under construction.

    Attributes:
        export_name: The attribute that declares it.
        info: The declaration.
        symbol: Its name in the module.
        op: Its operation.
        type: The type of its contents.
        dtype: The element type of a tensor; None for a scalar.
    """

    export_name: str
    info: GlobalsDef
    symbol: str
    op: Operation
    type: Type
    dtype: torch.dtype | None

    def materialize(self) -> IrGlobalScalar | IrGlobalTensor:
        """Return the global as a traced value of the current procedure."""
        named = {"symbol_name": self.symbol, "global_op": self.op, "global_type": self.type}
        if self.dtype is None:
            return IrGlobalScalar(self.export_name, self.info, **named)
        return IrGlobalTensor(self.export_name, self.info, dtype=self.dtype, **named)


class GlobalsDef:
    """A class attribute that declares globals.

    Args:
        attrs: How the globals are initialised, and whether they are mutable.
    """

    def __init__(self, attrs: GlobalAttributes) -> None:
        self.attrs = attrs

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the value of each global.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define items()")

    def schema(self) -> TreeSpec:
        """Return the structure in which procedures see the globals.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define schema()")

    def track(self, module_builder: ModuleBuilder, export_namespace: str) -> Any:
        """Add the globals to a module; return them as `TrackedGlobal`s in the declared structure.

        Args:
            module_builder: The module under construction.
            export_namespace: The attribute that declares them.

        Raises:
            ExportError: Two of the globals have one name, or one cannot be initialised.
        """
        leaves: list[TrackedGlobal] = []
        names: set[str] = set()
        shared: dict[int, TrackedGlobal] = {}
        for name, value in self.items():
            if name in names:
                raise ExportError(f"{export_namespace} exports the name {name!r} twice")
            names.add(name)
            tracked = shared.get(id(value))
            if tracked is None:
                tracked = self._track_one(module_builder, export_namespace, name, value)
            if isinstance(value, torch.Tensor):
                shared[id(value)] = tracked
            leaves.append(tracked)
        return tree_unflatten(leaves, self.schema())

    def _track_one(
        self, builder: ModuleBuilder, namespace: str, name: str, value: Any
    ) -> TrackedGlobal:
        symbol, logical = f"_{namespace}.{name}", f"{namespace}.{name}"
        if isinstance(value, torch.Tensor):
            return self._track_tensor(builder, namespace, symbol, logical, value)
        if isinstance(value, AbstractTensor):
            row = dtype_row(value.dtype, f"self.{namespace}")
            type_ = global_type(row, value.sizes, builder.context)
            actual, op = builder.create_typed_global(
                symbol, type_, attrs=self.attrs, logical_name=logical, dtype=row
            )
            return TrackedGlobal(namespace, self, actual, op, type_, value.dtype)
        return self._track_scalar(builder, namespace, symbol, value)

    def _track_tensor(
        self, builder: ModuleBuilder, namespace: str, symbol: str, logical: str, value: torch.Tensor
    ) -> TrackedGlobal:
        attrs = self._attributes_of(value)
        known = builder.globals.get(id(value))
        if known is not None and not (attrs.mutable and self._separate_when_mutable):
            op, actual, type_ = known.op, known.symbol, known.type
        elif known is None:
            made = builder.tensor_global(value, symbol, attrs, logical)
            op, actual, type_ = made.op, made.symbol, made.type
        else:
            actual, op, type_ = builder.create_tensor_global(
                symbol, value, attrs=attrs, logical_name=logical
            )
        return TrackedGlobal(namespace, self, actual, op, type_, value.dtype)

    def _track_scalar(
        self, builder: ModuleBuilder, namespace: str, symbol: str, value: Any
    ) -> TrackedGlobal:
        kind = value if isinstance(value, AbstractScalar) else scalar_type_of(value)
        if kind is None:
            raise ExportError(
                f"self.{namespace}: a {type(value).__name__} cannot be a global; export tensors, "
                "numbers, abstract types, or a tree of them with export_global_tree"
            )
        if self.attrs.external:
            raise ExportError(
                f"self.{namespace}: a number cannot come from an archive; use a tensor"
            )
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ExportError(f"self.{namespace}: {value} does not fit into 64 bits")
        type_ = kind.get_ir_type(builder)
        initial = None
        if not isinstance(value, AbstractScalar):
            with builder.context, Location.unknown():
                initial = (
                    FloatAttr.get(type_, value)
                    if isinstance(value, float)
                    else IntegerAttr.get(type_, value)
                )
        actual, op = builder.create_typed_global(symbol, type_, attrs=self.attrs, initial=initial)
        return TrackedGlobal(namespace, self, actual, op, type_, None)

    _separate_when_mutable = True
    """Whether a tensor that is declared twice becomes two globals where it is mutable."""

    def _attributes_of(self, tensor: torch.Tensor) -> GlobalAttributes:
        return self.attrs
