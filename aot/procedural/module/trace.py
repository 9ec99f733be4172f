"""Traces: functions whose operations come from running Python, with regions and versions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from iree.compiler.dialects import func as func_dialect
from iree.compiler.ir import Block, InsertionPoint, Value

from ...ir.assertions import emit_requirement
from ...ir.builder import ModuleBuilder
from ...spec.locations import user_location
from ..calls.captured import CapturedProgram
from ..calls.programs import call_function
from ..globals.live_globals import assign_tree
from ..values import indexing
from ..values.affine import Affine
from ..values.conversions import tensor_of_type
from ..values.errors import ProcedureTraceError
from ..values.intrinsics import Intrinsic
from ..values.services import Scope, TensorType
from ..values.tensors import IrTensor
from .function_builder import FunctionBuilder


class IrTrace(FunctionBuilder):
    """A function whose operations are emitted by running Python.

    Args:
        module_builder: The module that it belongs to.
        func_op: Its operation, with an entry block.

    Attributes:
        root_scope: The function's body.
        scope: The region that is being filled.
        affine_forms: The integers that are known to be sums of others.
        dim_values: The values that are sizes of tensors.
        stores: The symbols of the globals that the function stores to.
        callees: The captured programs and procedures that it calls.
    """

    def __init__(self, *, module_builder: ModuleBuilder, func_op: func_dialect.FuncOp) -> None:
        super().__init__(module_builder=module_builder, func_op=func_op)
        self.root_scope = Scope()
        self.scope = self.root_scope
        self.affine_forms: dict[Value, Affine] = {}
        self.dim_values: set[Value] = set()
        self._epoch = 0
        self._versions: dict[str, int] = {}
        self.stores: set[str] = set()
        self.callees: list[Any] = []

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self.func_op.name.value)

    def finalize(self) -> None:
        """Finish the function, after its return; a hook for subclasses, which does nothing here."""

    def fail(self, message: str) -> NoReturn:
        """Raise an error about this function, at the user's line.

        Raises:
            ProcedureTraceError: Always.
        """
        raise ProcedureTraceError(f"{self.name}(): {message}", location=user_location())

    @contextlib.contextmanager
    def region(self, block: Block, scope: Scope | None = None) -> Iterator[None]:
        """Emit operations at the end of a region's block.

        Args:
            block: The block.
            scope: The region, to continue one; None: a new region.
        """
        before = self.ip, self.scope
        self.ip, self.scope = InsertionPoint(block), scope or Scope(self.scope)
        self._epoch += 1
        try:
            yield
        finally:
            self.ip, self.scope = before
            self._epoch += 1

    def stored(self, symbol: str) -> None:
        """Record a store to a global."""
        self.stores.add(symbol)
        self._versions[symbol] = self._versions.get(symbol, 0) + 1

    def called(self, callee: CapturedProgram | Any) -> None:
        """Record a call of a captured program or a procedure, which may store to globals."""
        self.callees.append(callee)
        if not isinstance(callee, CapturedProgram) or callee.changed:
            self._epoch += 1

    def version_of(self, symbol: str) -> tuple[str, int, int]:
        """Return a key that loads of a global share if no store lies between them."""
        return (symbol, self._epoch, self._versions.get(symbol, 0))

    def handle_call(self, target: Intrinsic, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Emit a call of an intrinsic.

        Args:
            target: The intrinsic.
            args: Positional arguments.
            kwargs: Keyword arguments.
        """
        return target.resolve_call(self, *args, **kwargs)

    def handle_assignment(self, scope: Any, target: Any, updated_value: Any) -> None:
        """Emit the stores of a tree of values to a global or a tree of globals.

        Args:
            scope: The Python expression of the target, for messages.
            target: The global, or the collection of globals.
            updated_value: Values of the same structure.

        Raises:
            ProcedureTraceError: The structures or types differ, or a global is immutable.
        """
        assign_tree(self, target, updated_value, str(scope))

    def call_torch(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Emit a call of a torch function on traced values; each distinct use is traced once.

        Args:
            function: The function.
            args: Positional arguments.
            kwargs: Keyword arguments.

        Raises:
            ProcedureTraceError: torch refuses the arguments.
        """
        return call_function(self, function, args, kwargs or {})

    def require(self, condition: Any, message: str) -> None:
        """Emit a check that stops the program with a message; a Python bool is checked now.

        Raises:
            ProcedureTraceError: The condition is False.
        """
        if isinstance(condition, bool):
            if not condition:
                self.fail(message)
            return
        place = user_location()
        where = f" (at {place})" if place is not None else ""
        with self.emitting():
            emit_requirement(condition.ir_value, f"{self.name}(): {message}{where}")

    def read(self, tensor: IrTensor, index: Any) -> IrTensor:
        """Emit `tensor[index]`; the result writes through to the tensor.

        Raises:
            ProcedureTraceError: The index does not fit the tensor.
        """
        return indexing.read(tensor, index)

    def write(self, tensor: IrTensor, index: Any, value: Any) -> IrTensor:
        """Emit a copy of a tensor with the part at an index replaced.

        Args:
            tensor: The tensor.
            index: The part to replace.
            value: A tensor or number; it is converted and expanded as torch does.

        Raises:
            ProcedureTraceError: The index does not fit the tensor, or the value the part.
        """
        return indexing.write(tensor, index, value)

    def tensor_of_type(self, value: Any, expected: TensorType, where: str) -> Value:
        """Emit a value as a tensor of a type; static and dynamic sizes may meet.

        Args:
            value: A traced tensor, a torch tensor or a traced scalar.
            expected: A traced tensor or an abstract tensor of the type.
            where: The use of the value, for messages.

        Raises:
            ProcedureTraceError: The element type, the rank or a size differs.
        """
        return tensor_of_type(self, value, expected, where)
