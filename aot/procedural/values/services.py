"""Services of a trace: the interface through which traced values use the current function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol

import torch
from iree.compiler.ir import Block, Context, InsertionPoint, Location, Value

from ...ir.builder import ModuleBuilder
from .affine import Affine


class Scope:
    """A region of a traced function: its body, a loop body or a branch.

    Args:
        parent: The region that it is nested in; None: it is the function's body.

    Example:
        >>> body = Scope()
        >>> loop = Scope(body)
        >>> body.encloses(loop), loop.encloses(body)
        (True, False)
    """

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent

    def encloses(self, other: Scope | None) -> bool:
        """Return whether values of this region are visible in `other`."""
        while other is not None and other is not self:
            other = other.parent
        return other is self


class TensorType(Protocol):
    """The type of a tensor: a traced tensor, or an abstract one."""

    dtype: torch.dtype

    @property
    def type_shape(self) -> list[int]:
        """The shape as in MLIR types, with `sizes.DYNAMIC` for dynamic sizes."""


class TraceServices(Protocol):
    """The part of a trace that traced values and the operations on them use.

    The trace implements it with modules that import the values, so values never import the trace.

    Attributes:
        module_builder: The module that the function belongs to.
        context: The module's MLIR context.
        ip: Where the next operation goes.
        scope: The region that is being filled.
        root_scope: The function's body.
        affine_forms: The integers that are known to be sums of others.
        dim_values: The values that are sizes of tensors.
    """

    module_builder: ModuleBuilder
    context: Context
    ip: InsertionPoint
    scope: Scope
    root_scope: Scope
    affine_forms: dict[Value, Affine]
    dim_values: set[Value]

    @property
    def name(self) -> str:
        """The function's name."""

    def location(self) -> Location:
        """Return the location of the user's line that is running."""

    def emitting(self) -> AbstractContextManager[None]:
        """Emit operations at the insertion point, with the user's line."""

    def region(self, block: Block, scope: Scope | None = None) -> AbstractContextManager[None]:
        """Emit operations at the end of a region's block."""

    def fail(self, message: str) -> NoReturn:
        """Raise a `ProcedureTraceError` at the user's line."""

    def require(self, condition: Any, message: str) -> None:
        """Emit a check of a traced bool; a Python bool is checked now."""

    def stored(self, symbol: str) -> None:
        """Record a store to a global."""

    def called(self, callee: Any) -> None:
        """Record a call of a captured program or a procedure."""

    def version_of(self, symbol: str) -> tuple[str, int, int]:
        """Return a key that loads of a global share if no store lies between them."""

    def handle_call(self, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Emit a call of an intrinsic.

        Args:
            target: The intrinsic.
            args: Positional arguments.
            kwargs: Keyword arguments.
        """

    def handle_assignment(self, scope: Any, target: Any, updated_value: Any) -> None:
        """Emit the stores of a tree of values to a global or a tree of globals.

        Args:
            scope: The Python expression of the target, for messages.
            target: The global, or the collection of globals.
            updated_value: Values of the same structure.
        """

    def call_torch(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Emit a call of a torch function on traced values.

        Args:
            function: The function.
            args: Positional arguments.
            kwargs: Keyword arguments.
        """

    def read(self, tensor: Any, index: Any) -> Any:
        """Emit `tensor[index]`."""

    def write(self, tensor: Any, index: Any, value: Any) -> Any:
        """Emit a copy of a tensor with the part at an index replaced.

        Args:
            tensor: The tensor.
            index: The part to replace.
            value: A tensor or number; it is converted and broadcast as torch does.
        """

    def tensor_of_type(self, value: Any, expected: TensorType, where: str) -> Value:
        """Emit a value as a tensor of a type; static and dynamic sizes may meet.

        Args:
            value: A traced tensor, a torch tensor or a traced scalar.
            expected: A traced tensor or an abstract tensor of the type.
            where: The use of the value, for messages.
        """
