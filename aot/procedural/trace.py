"""A procedure under construction: where operations go, which line they come from, what is allowed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import torch
from iree.compiler.dialects import func as func_dialect
from iree.compiler.ir import (
    Block,
    Context,
    FunctionType,
    InsertionPoint,
    Location,
    RankedTensorType,
    Type,
    TypeAttr,
    Value,
)

from pelton.runtime import trees
from pelton.runtime.dtypes import BY_TORCH_MLIR

from ..builder import GlobalAttributes, ModuleBuilder, TensorGlobal
from ..errors import user_location
from ..tensor_data import shape_of
from . import arithmetic, emission, programs
from .affine import Affine
from .abstract import AbstractIntrinsic, AbstractTensor
from .arithmetic import number_like
from .current import current_ir_trace, new_ir_trace_scope
from .devices import attributes_from_argument_device_affinities
from .errors import ProcedureTraceError
from .indexing import Span
from .intrinsics import Intrinsic
from .live_globals import assign_tree, plain_tree
from .scalars import IrImmediateScalar, IrScalar
from .tensors import IrImmediateTensor, IrTensor, Size

__all__ = [
    "FunctionBuilder",
    "IrTrace",
    "ProcedureTrace",
    "ProcedureTraceError",
    "Scope",
    "convert_py_value_to_ir",
    "current_ir_trace",
    "new_ir_trace_scope",
]


class Scope:
    """A region of a procedure: its body, a loop body or a branch."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent

    def encloses(self, other: Scope | None) -> bool:
        """Tell whether values of this region are visible in `other`."""
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
        emission.emit_check(self, condition.ir_value, f"{self.name}(): {message}{where}")

    def select(self, condition: Any, yes: Any, no: Any) -> Any:
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
            return emission.emit_single(self, value)
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
            else [emission.DYNAMIC if size is None else size for size in expected.sizes]
        )
        fits = given.dtype == expected.dtype and given.rank == len(shape)
        fits = fits and all(
            emission.DYNAMIC in (a, b) or a == b
            for a, b in zip(given.type_shape, shape, strict=True)
        )
        if not fits:
            self.fail(f"{where} expects {expected}, got {given}")
        return emission.emit_cast(self, given, shape)

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
        return IrImmediateTensor(emission.emit_global_load(self, source), dtype)

    def slice(self, source: IrTensor, spans: Sequence[Span]) -> IrTensor:
        """Emit the box of a tensor that spans select."""
        return emission.emit_slice(self, source, spans)

    def update(self, target: IrTensor, update: IrTensor, spans: Sequence[Span]) -> IrTensor:
        """Emit a tensor with a box of it replaced."""
        return emission.emit_update(self, target, update, spans)

    def reshape(self, source: IrTensor, shape: Sequence[Size]) -> IrTensor:
        """Emit a tensor in another shape of as many elements."""
        return emission.emit_reshape(self, source, shape)

    def splat(self, shape: Sequence[Size], value: Any, dtype: torch.dtype) -> IrTensor:
        """Emit a tensor filled with a number, converted as torch does.

        Raises:
            ProcedureTraceError: There are no scalars of the element type.
        """
        kind = arithmetic.KIND_OF_DTYPE.get(dtype)
        if kind is None:
            wide = torch.float32 if dtype.is_floating_point else torch.int64
            return self.call_torch(torch.Tensor.to, (self.splat(shape, value, wide), dtype))
        with self.emitting():
            number = self.scalar_value(value, None)
            return emission.emit_splat(self, shape, arithmetic.convert(number, kind), dtype)

    def part_of(self, part: IrTensor, base: IrTensor, index: Any) -> IrTensor:
        """Return a part of a tensor that writes through to it."""
        result = IrImmediateTensor(part.ir_value, part.dtype, (base, index))
        result.set_dynamic_dim_values(part.dynamic_dim_values())
        return result


def convert_py_value_to_ir(proc_trace: ProcedureTrace, py_value: Any) -> Sequence[Value]:
    """Return the values of a traced value, a number, or a torch tensor.

    Raises:
        ProcedureTraceError: It cannot be a value of the compiled program.
    """
    if isinstance(py_value, Value):
        return [py_value]
    if isinstance(py_value, Intrinsic):
        return py_value.resolve_ir_values(py_value.trace)
    if isinstance(py_value, torch.Tensor):
        return [proc_trace.constant(py_value).ir_value]
    if number_like(py_value):
        return [proc_trace.scalar(py_value).ir_value]
    proc_trace.fail(
        f"a {type(py_value).__name__} ({py_value!r:.80}) cannot become a value of the compiled "
        "program; use tensors, numbers, and containers of them"
    )


class ProcedureTrace(IrTrace):
    """A procedure: a Python function run once on stand-ins for its arguments.

    Args:
        module_builder: The module that it belongs to.
        func_op: Its operation, with an entry block.
        proxy_posargs: The stand-ins for positional arguments.
        proxy_kwargs: The stand-ins for keyword arguments.

    Attributes:
        result_tree: The structure of the result, once traced.
        results: Its leaves: traced values, and what is constant.
    """

    def __init__(
        self,
        *,
        module_builder: ModuleBuilder,
        func_op: func_dialect.FuncOp,
        proxy_posargs: Sequence[Any] = (),
        proxy_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(module_builder=module_builder, func_op=func_op)
        self.proxy_posargs = list(proxy_posargs)
        self.proxy_kwargs = dict(proxy_kwargs or {})
        self.result_tree: trees.Tree = None
        self.results: list[Any] = []

    @staticmethod
    def define_func(
        module_builder: ModuleBuilder,
        *,
        symbol_name: str,
        posargs: Sequence[Any],
        kwargs: Mapping[str, Any],
        loc: Location,
        arg_device: Mapping[int, Any] | None = None,
        public: bool = True,
    ) -> ProcedureTrace:
        """Add a function to a module and return its trace.

        Args:
            module_builder: The module.
            symbol_name: The function's name; a taken one gets a suffix.
            posargs: Positional arguments: trees of abstract types; other leaves are constants.
            kwargs: Keyword arguments of the same kinds.
            loc: Where it is written.
            arg_device: The device of each flat argument, by its position.
            public: Whether it is an entry point.
        """
        tree, leaves = trees.describe([list(posargs), dict(kwargs)], _is_abstract)
        abstract = [leaf for leaf in leaves if _is_abstract(leaf)]
        types = [leaf.get_ir_type(module_builder) for leaf in abstract]
        attributes = attributes_from_argument_device_affinities(
            arg_device, len(types), module_builder.context
        )
        _, func_op = module_builder.create_func_op(
            symbol_name, types, public, argument_attributes=attributes or None
        )
        func_op.operation.location = loc
        trace = ProcedureTrace(module_builder=module_builder, func_op=func_op)
        trace.loc = loc
        with new_ir_trace_scope(trace):
            values = iter(func_op.arguments)
            proxies = [
                leaf.create_intrinsic(next(values)) if _is_abstract(leaf) else leaf
                for leaf in leaves
            ]
            _share_named_sizes(leaves, proxies)
        trace.proxy_posargs, trace.proxy_kwargs = trees.unflatten(tree, proxies)
        return trace

    def trace_py_func(self, py_f: Callable[..., Any]) -> None:
        """Run a Python function on the stand-ins; its result is returned.

        Raises:
            ProcedureTraceError: It does something that cannot be compiled.
        """
        with new_ir_trace_scope(self):
            result = plain_tree(py_f(*self.proxy_posargs, **self.proxy_kwargs))
            self.result_tree, leaves = trees.describe(result, _is_result)
            self.results = [self._result(leaf) for leaf in leaves]
            values = [leaf.ir_value for leaf in self.results if isinstance(leaf, Intrinsic)]
            self.emit_return(*values)
            self.finalize()

    def _result(self, leaf: Any) -> Any:
        if isinstance(leaf, Value):
            return _intrinsic_of(leaf)
        if isinstance(leaf, IrTensor):
            result = IrImmediateTensor(leaf.ir_value, leaf.dtype)
            for axis, size in leaf.stated_sizes().items():
                result.state_size(axis, size)
            return result
        if isinstance(leaf, IrScalar):
            return IrImmediateScalar(leaf.ir_value)
        if isinstance(leaf, torch.Tensor):
            return self.constant(leaf)
        if leaf is None or isinstance(leaf, (bool, int, float, str)):
            return leaf
        self.fail(
            f"a result is a {type(leaf).__name__} ({leaf!r:.80}), which cannot be returned; return "
            "tensors, numbers, text, None, or lists, tuples, dicts and dataclasses of them"
        )


def _is_abstract(value: Any) -> bool:
    return isinstance(value, AbstractIntrinsic)


def _is_result(value: Any) -> bool:
    return isinstance(value, (Intrinsic, Value, torch.Tensor))


def _intrinsic_of(value: Value) -> Intrinsic:
    """Return a traced value for a bare value of the module."""
    if not isinstance(value.type, RankedTensorType):
        return IrImmediateScalar(value)
    element = str(value.type.element_type)
    row = BY_TORCH_MLIR.get(f"s{element}") or BY_TORCH_MLIR[element]
    return IrImmediateTensor(value, getattr(torch, row.name))


def _share_named_sizes(leaves: Sequence[Any], proxies: Sequence[Any]) -> None:
    """Let the sizes of one name be one value, which the caller has checked."""
    first: dict[str, tuple[IrTensor, int]] = {}
    for leaf, proxy in zip(leaves, proxies, strict=True):
        if not isinstance(leaf, AbstractTensor):
            continue
        for axis, name in leaf.size_names().items():
            owner, at = first.setdefault(name, (proxy, axis))
            if owner is not proxy or at != axis:
                proxy.state_size(axis, owner.get_dim_value(at))
