"""A function under construction: where its operations go, and which line they come from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from iree.compiler.dialects import func as func_dialect
from iree.compiler.ir import Context, FunctionType, InsertionPoint, Location, Type, TypeAttr, Value

from ...ir.builder import ModuleBuilder
from ...spec.locations import user_location


class Scope:
    """A region of a procedure: its body, a loop body or a branch."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent

    def encloses(self, other: Scope | None) -> bool:
        """Return whether values of this region are visible in `other`."""
        while other is not None and other is not self:
            other = other.parent
        return other is self


class FunctionBuilder:
    """A function under construction.

    Args:
        module_builder: The module that it belongs to.
        func_op: Its operation, with an entry block.

    Attributes:
        context: The module's MLIR context.
        ip: Where the next operation goes.
        loc: The function's own place in the user's source.
        return_types: The types of its results, once it returns.
    """

    def __init__(self, *, module_builder: ModuleBuilder, func_op: func_dialect.FuncOp) -> None:
        self.module_builder = module_builder
        self.func_op = func_op
        self.context: Context = func_op.context
        self.ip = InsertionPoint(func_op.entry_block)
        self.loc: Location = func_op.location
        self.return_types: Sequence[Type] | None = None

    def location(self) -> Location:
        """Return the user's line that is running, or the function's own."""
        place = user_location()
        if place is None:
            return self.loc
        return Location.file(place.file, place.line, 1, self.context)

    @contextlib.contextmanager
    def emitting(self) -> Iterator[None]:
        """Emit operations at the function's insertion point, with the user's line."""
        with self.ip, self.location():
            yield

    def emit_return(self, *ir_values: Value) -> None:
        """Emit the return; the function gets the types of the values as results."""
        with self.emitting():
            func_dialect.ReturnOp(list(ir_values))
        types = [value.type for value in ir_values]
        given = list(self.func_op.type.inputs)
        with self.context:
            type_ = TypeAttr.get(FunctionType.get(given, types))
        self.func_op.operation.attributes["function_type"] = type_
        self.return_types = types
