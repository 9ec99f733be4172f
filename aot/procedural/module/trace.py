"""A trace: what running Python emits, what it may use, and how its values are converted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import torch
from iree.compiler.dialects import func as func_dialect
from iree.compiler.ir import Block, InsertionPoint, Value

from ...ir.builder import GlobalAttributes, ModuleBuilder, TensorGlobal
from ...ir.elements import shape_of
from ...spec.locations import user_location
from ..calls import programs
from ..globals.live_globals import assign_tree
from ..globals.types import AbstractTensor
from ..values import arithmetic, tensor_ops
from ..values.affine import Affine
from ..values.arithmetic import number_like
from ..values.errors import ProcedureTraceError
from ..values.indexing import Span
from ..values.intrinsics import Intrinsic
from ..values.scalars import IrImmediateScalar, IrScalar
from ..values.sizes import DYNAMIC
from ..values.tensors import IrImmediateTensor, IrTensor, Size
from .function_builder import FunctionBuilder, Scope


class IrTrace(FunctionBuilder):
    """A function whose operations come from running Python.

    Args:
        module_builder: The module that it belongs to.
        func_op: Its operation, with an entry block.

    Attributes:
        root_scope: The function's body.
        scope: The region that is being filled.
        sums: The integers that are known to be sums of others.
        sizes: The values that are sizes of tensors.
        stores: The symbols of the globals that the function stores to.
        callees: The captured programs and procedures that it calls.
    """

    def __init__(self, *, module_builder: ModuleBuilder, func_op: func_dialect.FuncOp) -> None:
        super().__init__(module_builder=module_builder, func_op=func_op)
        self.root_scope = Scope()
        self.scope = self.root_scope
        self.sums: dict[Value, Affine] = {}
        self.sizes: set[Value] = set()
        self._epoch = 0
        self._versions: dict[str, int] = {}
        self.stores: set[str] = set()
        self.callees: list[Any] = []

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self.func_op.name.value)

    def finalize(self) -> None:
        """Do what is left when the function is complete; here nothing."""

    def fail(self, message: str) -> NoReturn:
        """Raise an error about this function, at the user's line.

        Raises:
            ProcedureTraceError: Always.
        """
        raise ProcedureTraceError(f"{self.name}(): {message}", location=user_location())

    @contextlib.contextmanager
    def region(self, block: Block, scope: Scope | None = None) -> Iterator[None]:
        """Fill a region: operations go to the end of its block.

        Args:
            block: The block.
            scope: The region, if it was begun before.
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
        """Note that a global was stored to."""
        self.stores.add(symbol)
        self._versions[symbol] = self._versions.get(symbol, 0) + 1

    def called(self, callee: programs.CapturedProgram | Any) -> None:
        """Note a call of a captured program or a procedure, which may store to globals."""
        self.callees.append(callee)
        if not isinstance(callee, programs.CapturedProgram) or callee.changed:
            self._epoch += 1

    def version_of(self, symbol: str) -> tuple[str, int, int]:
        """Return what is the same for two loads of a global if nothing is stored in between."""
        return (symbol, self._epoch, self._versions.get(symbol, 0))

    def handle_call(self, target: Intrinsic, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Emit a call of something that the procedure has."""
        return target.resolve_call(self, *args, **kwargs)

    def handle_assignment(self, scope: Any, target: Any, updated_value: Any) -> None:
        """Emit the stores of a tree of values to a global or a tree of them.

        Args:
            scope: What the assignment is made in, for messages.
            target: The global, or the collection of them.
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
        """Emit a call of a torch function on traced values; each distinct use is traced once."""
        return programs.call_function(self, function, args, kwargs or {})

    def require(self, condition: Any, message: str) -> None:
        """Emit a check that stops the program with a message; a known condition is checked now.

        Raises:
            ProcedureTraceError: The condition is known to be false.
        """
        if isinstance(condition, bool):
            if not condition:
                self.fail(message)
            return
        place = user_location()
        where = f" (at {place})" if place is not None else ""
        tensor_ops.emit_check(self, condition.ir_value, f"{self.name}(): {message}{where}")

    def select(self, condition: Any, yes: Any, no: Any) -> IrScalar:
        """Return one of two numbers by a traced bool."""
        with self.emitting():
            kind = next((s.kind for s in (yes, no) if isinstance(s, IrScalar)), "index")
            values = [
                arithmetic.convert(self.scalar_value(number, kind), kind) for number in (yes, no)
            ]
            return IrImmediateScalar(arithmetic.select(condition.ir_value, *values))

    def index(self, value: Any) -> IrScalar:
        """Return an integer, or a tensor of one, as a number of type index.

        Raises:
            ProcedureTraceError: It is no integer.
        """
        if isinstance(value, IrTensor):
            value = value.item()
        if not isinstance(value, IrScalar):
            value = self.scalar(value)
        if arithmetic.is_float(value.kind) or value.kind == "i1":
            self.fail(f"a size or position is an integer, not {value!r}")
        if value.kind == "index":
            return value  # type: ignore[no-any-return]
        with self.emitting():
            return IrImmediateScalar(arithmetic.convert(value.ir_value, "index"), value.affine())

    def size_of(self, value: Any) -> IrScalar | None:
        """Return a value as a traced size if it is known to be the size of a tensor, else None."""
        return IrImmediateScalar(value) if value in self.sizes else None

    def scalar(self, value: Any) -> IrScalar:
        """Return a number or traced number as a traced number.

        Raises:
            ProcedureTraceError: It is something else.
        """
        if isinstance(value, IrScalar):
            return value
        with self.emitting():
            return IrImmediateScalar(self.scalar_value(value, None))

    def scalar_value(self, other: Any, beside: str | None) -> Value:
        """Return a number's value; a Python number takes the kind of the operand beside it.

        Raises:
            ProcedureTraceError: It is no number, or too large for its kind.
        """
        if isinstance(other, IrScalar):
            return other.ir_value
        if not number_like(other):
            self.fail(f"expected a number, got {other!r}")
        kind = arithmetic.kind_of_literal(other, beside)
        try:
            return arithmetic.constant(other, kind)
        except OverflowError as error:
            self.fail(str(error))

    def scalar_of_type(self, other: Any, kind: str, where: str) -> Value:
        """Return a number's value for a place of a kind: of that, a smaller integer, or Python's.

        Raises:
            ProcedureTraceError: It is of another kind.
        """
        if isinstance(other, IrScalar):
            if other.kind != kind and not arithmetic.holds(kind, other.kind):
                self.fail(f"{where} takes {kind}, got {other!r}; convert it with .to(dtype)")
            with self.emitting():
                return arithmetic.convert(other.ir_value, kind)
        lossy = isinstance(other, float) and not arithmetic.is_float(kind)
        mixed = isinstance(other, bool) != (kind == "i1") and isinstance(other, (bool, int))
        if not number_like(other) or lossy or mixed:
            self.fail(f"{where} takes {kind}, got {other!r}")
        with self.emitting():
            return self.scalar_value(other, kind)

    def tensor(self, value: Any, where: str) -> IrTensor:
        """Return a traced tensor, or a torch tensor as one.

        Raises:
            ProcedureTraceError: It is no tensor.
        """
        if isinstance(value, IrTensor):
            return value
        if isinstance(value, torch.Tensor):
            return self.constant(value)
        if isinstance(value, IrScalar):
            return tensor_ops.emit_single(self, value)
        hint = "; fill a tensor with `tensor[...] = number`" if number_like(value) else ""
        self.fail(f"{where} must be a tensor, got {value!r}{hint}")

    def tensor_of_type(self, value: Any, expected: IrTensor | AbstractTensor, where: str) -> Value:
        """Return a tensor's value for a place of a type; static and dynamic sizes may meet.

        Raises:
            ProcedureTraceError: Its element type, rank or a size differs.
        """
        given = self.tensor(value, where)
        shape = (
            expected.type_shape
            if isinstance(expected, IrTensor)
            else [DYNAMIC if size is None else size for size in expected.sizes]
        )
        fits = given.dtype == expected.dtype and given.rank == len(shape)
        fits = fits and all(
            DYNAMIC in (a, b) or a == b for a, b in zip(given.type_shape, shape, strict=True)
        )
        if not fits:
            self.fail(f"{where} expects {expected}, got {given}")
        return tensor_ops.emit_cast(self, given, shape)

    def constant(self, tensor: torch.Tensor) -> IrTensor:
        """Return a torch tensor as a traced one: a load of its global."""
        known = self.module_builder.globals.get(id(tensor))
        if known is None:
            shape = "_".join(map(str, shape_of(tensor)))
            name = f"__auto.constant_{shape}_{tensor.dtype}"
            known = self.module_builder.tensor_global(tensor, name, GlobalAttributes())
        return self.load(known, tensor.dtype)

    def load(self, source: TensorGlobal, dtype: torch.dtype) -> IrTensor:
        """Emit the load of a tensor global."""
        loaded = IrImmediateTensor(tensor_ops.emit_global_load(self, source), dtype)
        loaded.origins = frozenset({source.symbol})
        return loaded

    def slice(self, source: IrTensor, spans: Sequence[Span]) -> IrTensor:
        """Emit the box of a tensor that spans select."""
        return tensor_ops.emit_slice(self, source, spans)

    def update(self, target: IrTensor, update: IrTensor, spans: Sequence[Span]) -> IrTensor:
        """Emit a tensor with a box of it replaced."""
        return tensor_ops.emit_update(self, target, update, spans)

    def reshape(self, source: IrTensor, shape: Sequence[Size]) -> IrTensor:
        """Emit a tensor in another shape of as many elements."""
        return tensor_ops.emit_reshape(self, source, shape)

    def splat(self, shape: Sequence[Size], value: Any, dtype: torch.dtype) -> IrTensor:
        """Emit a tensor filled with a number, converted as torch does.

        Raises:
            ProcedureTraceError: There are no scalars of the element type.
        """
        kind = arithmetic.KIND_OF_DTYPE.get(dtype)
        if kind is None:
            wide = torch.float32 if dtype.is_floating_point else torch.int64
            filled: IrTensor = self.call_torch(
                torch.Tensor.to, (self.splat(shape, value, wide), dtype)
            )
            return filled
        with self.emitting():
            number = self.scalar_value(value, None)
            return tensor_ops.emit_splat(self, shape, arithmetic.convert(number, kind), dtype)

    def part_of(self, part: IrTensor, base: IrTensor, index: Any) -> IrTensor:
        """Return a part of a tensor that writes through to it."""
        result = IrImmediateTensor(part.ir_value, part.dtype, (base, index))
        result.set_dynamic_dim_values(part.dynamic_dim_values())
        result.origins = part.origins
        return result
