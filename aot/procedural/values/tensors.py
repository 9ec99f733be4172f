"""Tensors of a traced procedure: operators, sizes and assignment of values known at run time."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from iree.compiler.dialects import tensor as tensor_dialect
from iree.compiler.ir import Block, InsertionPoint, Operation, OpView, Type, Value

from ...compat.pytrees import tree_leaves
from ...ir.elements import dtype_row
from .arithmetic import KIND_OF_DTYPE, index_constant
from .intrinsics import Intrinsic
from .scalars import IrImmediateScalar, IrScalar, Size
from .services import TraceServices
from .sizes import is_dynamic, render_shape

NO_ALIAS: frozenset[str] = frozenset()
"""`may_alias` of a tensor that an operation computes."""

MAY_ALIAS_ANY = frozenset({"?"})
"""`may_alias` of a tensor that may be the contents of any global, such as an argument."""


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: IrTensor, *others: Any) -> Any:
        return self.trace.call_torch(function, (self, *others))

    return method


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: IrTensor, other: Any) -> Any:
        return self.trace.call_torch(function, (other, self))

    return method


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: IrTensor, other: Any) -> Any:
        result = self.trace.call_torch(function, (self, other))
        self.assign(self.trace.call_torch(torch.Tensor.to, (result, self.dtype)))
        return self

    return method


@functools.lru_cache(maxsize=256)
def _functional(name: str) -> Callable[..., torch.Tensor]:
    """Return the functional form of an in-place method of torch tensors."""

    def function(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        changed = tensor.clone()
        getattr(changed, name)(*args, **kwargs)
        return changed

    function.__name__ = name.rstrip("_")
    return function


class IrTensor(Intrinsic):
    """A traced tensor.

    Operators, indexing, methods and torch functions have torch's meaning; each distinct use is
    traced once into a private function of the module. `shape` holds Python integers for static
    sizes and traced scalars for dynamic ones. Indexing reads the elements as they are then;
    assigning to an indexed part changes the tensor that it was taken from.

    Args:
        ir_type: Its type in the module, a builtin tensor type.
        dtype: Its element type.

    Attributes:
        may_alias: The symbols of the globals whose memory it may share.
    """

    def __init__(self, ir_type: Type, dtype: torch.dtype) -> None:
        super().__init__()
        self.ir_type = ir_type
        self.dtype = dtype
        self.may_alias = NO_ALIAS
        self._sizes: dict[int, Value] = {}

    @property
    def type_shape(self) -> list[int]:
        """The shape as in its MLIR type, with `sizes.DYNAMIC` for dynamic sizes."""
        return list(self.ir_type.shape)  # type: ignore[attr-defined]

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.type_shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.rank

    @property
    def shape(self) -> tuple[Size, ...]:
        """The sizes: Python integers where they are static, else traced scalars."""
        return tuple(self._size(axis) for axis in range(self.rank))

    def _size(self, axis: int) -> Size:
        size = self.type_shape[axis]
        return IrImmediateScalar(self.get_dim_value(axis)) if is_dynamic(size) else size

    def size(self, dim: int | None = None) -> Any:
        """Return all sizes, or that of one dimension; a negative dimension counts from the end.

        Raises:
            ProcedureTraceError: There is no such dimension.
        """
        return self.shape if dim is None else self._size(self._axis(dim))

    def dim(self, index: int | None = None) -> Any:
        """Return the number of dimensions, or the size of one.

        Raises:
            ProcedureTraceError: There is no such dimension.
        """
        return self.rank if index is None else self.size(index)

    def numel(self) -> Size:
        """Return the number of elements."""
        return functools.reduce(operator.mul, self.shape, 1)

    def _axis(self, dim: int) -> int:
        if type(dim) is not int or not -self.rank <= dim < self.rank:
            self.trace.fail(f"{self!r} has no dimension {dim!r}; it has {self.rank}")
        return dim % self.rank

    def get_dim_value(
        self,
        index: int,
        *,
        constant_cache: dict[int, Value] | None = None,
        resolved_ir_value: Value | None = None,
    ) -> Value:
        """Return a size as a value of type index; a dynamic one is read once.

        Args:
            index: The dimension, from 0.
            constant_cache: Emitted index constants by number; new ones are added.
            resolved_ir_value: The tensor's own value, where it is emitted already.
        """
        size = self.type_shape[index]
        if is_dynamic(size):
            if index not in self._sizes:
                value = self.ir_value if resolved_ir_value is None else resolved_ir_value
                with self.trace.emitting(), _after_definition(value):
                    found = build_tensor_dim_value(value, index, constant_cache)
                    self.set_dim_value(index, found)
            return self._sizes[index]
        with self.trace.emitting():
            if constant_cache is None:
                return index_constant(size)
            if size not in constant_cache:
                constant_cache[size] = index_constant(size)
            return constant_cache[size]

    def set_dynamic_dim_values(self, values: Sequence[Value]) -> None:
        """Set the values of the dynamic sizes, in order, so that none is read from the tensor.

        Raises:
            ProcedureTraceError: There are more or fewer dynamic sizes.
        """
        axes = [axis for axis, size in enumerate(self.type_shape) if is_dynamic(size)]
        if len(axes) != len(values):
            self.trace.fail(f"{self!r} has {len(axes)} dynamic sizes, got {len(values)}")
        for axis, value in zip(axes, values, strict=True):
            self.set_dim_value(axis, value)

    def set_dim_value(self, axis: int, value: Value) -> None:
        """Set the value of one dynamic size, so that it is not read from the tensor."""
        self._sizes[axis] = value
        self._trace.dim_values.add(value)

    def known_dim_values(self) -> dict[int, Value]:
        """Return the dynamic sizes that are known as values, by dimension."""
        return dict(self._sizes)

    def dynamic_dim_values(self) -> list[Value]:
        """Return the values of the dynamic sizes, in order."""
        shape = self.type_shape
        return [self.get_dim_value(axis) for axis, size in enumerate(shape) if is_dynamic(size)]

    def assign(self, value: Any) -> None:
        """Replace the elements by those of a tensor of its type, as an in-place operation does.

        Raises:
            ProcedureTraceError: The tensor cannot be changed here, or the types differ.
        """
        raise NotImplementedError

    def item(self) -> IrScalar:
        """Return the only element as a traced scalar; an element of a 16- or 8-bit float as f32.

        Raises:
            ProcedureTraceError: There is not exactly one element.
        """
        trace = self.trace
        if any(size != 1 for size in self.type_shape):
            trace.fail(f".item() takes a tensor of one element, got {self!r}")
        if self.dtype not in KIND_OF_DTYPE:
            if not self.dtype.is_floating_point:
                trace.fail(f"there are no scalars of type {self.dtype}; convert the tensor first")
            wide: IrTensor = trace.call_torch(torch.Tensor.to, (self, torch.float32))
            return wide.item()
        with trace.emitting():
            position = [index_constant(0)] * self.rank
            return IrImmediateScalar(tensor_dialect.extract(self.ir_value, position))

    def numpy(self) -> Any:
        """Refuse: the elements are known only when the program runs.

        Raises:
            ProcedureTraceError: Always.
        """
        self.refuse(".numpy()", "return the tensor, or aot.print it")

    def tolist(self) -> Any:
        """Refuse: the elements are known only when the program runs.

        Raises:
            ProcedureTraceError: Always.
        """
        self.refuse(".tolist()", "return the tensor, or aot.print it")

    def __len__(self) -> int:
        self.refuse("len()", "use .shape[0]")

    def __iter__(self) -> Iterator[Any]:
        self.refuse("iteration", "use aot.for_loop, or .unbind() for a static size")

    def __contains__(self, item: Any) -> bool:
        self.refuse("`in`", "compare with `==` and reduce with .any()")

    def __getitem__(self, index: Any) -> IrTensor:
        part: IrTensor = self.trace.read(self, index)
        return part

    def __setitem__(self, index: Any, value: Any) -> None:
        self.assign(self.trace.write(self, index, value))

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        leaves = tree_leaves((args, kwargs or {}))
        first = next(leaf for leaf in leaves if isinstance(leaf, IrTensor))
        return first.trace.call_torch(func, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(torch.Tensor, name, None)
        if not callable(method):
            if name in _PROPERTIES:
                return self.trace.call_torch(_PROPERTIES[name], (self,))
            raise AttributeError(f"{self!r} has no attribute {name!r}")

        def call(*args: Any, **kwargs: Any) -> Any:
            if not name.endswith("_"):
                return self.trace.call_torch(method, (self, *args), kwargs)
            self.assign(self.trace.call_torch(_functional(name), (self, *args), kwargs))
            return self

        return call

    __add__, __radd__ = _operator(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _operator(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _operator(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _operator(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _operator(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _operator(operator.mod), _reflected(operator.mod)
    __pow__, __rpow__ = _operator(operator.pow), _reflected(operator.pow)
    __matmul__, __rmatmul__ = _operator(operator.matmul), _reflected(operator.matmul)
    __and__, __rand__ = _operator(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _operator(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _operator(operator.xor), _reflected(operator.xor)
    __lshift__, __rlshift__ = _operator(operator.lshift), _reflected(operator.lshift)
    __rshift__, __rrshift__ = _operator(operator.rshift), _reflected(operator.rshift)
    __iadd__, __isub__ = _in_place(operator.add), _in_place(operator.sub)
    __imul__, __itruediv__ = _in_place(operator.mul), _in_place(operator.truediv)
    __neg__, __invert__ = _operator(operator.neg), _operator(operator.invert)
    __abs__ = _operator(operator.abs)
    __lt__, __le__ = _operator(operator.lt), _operator(operator.le)
    __gt__, __ge__ = _operator(operator.gt), _operator(operator.ge)
    __eq__ = _operator(operator.eq)
    __ne__ = _operator(operator.ne)
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<traced {self}>"

    def __str__(self) -> str:
        return f"{dtype_row(self.dtype, 'a tensor')}[{render_shape(self.type_shape)}]"


_PROPERTIES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "T": lambda tensor: tensor.T,
    "mT": lambda tensor: tensor.mT,
    "real": lambda tensor: tensor.real,
    "imag": lambda tensor: tensor.imag,
}


class IrImmediateTensor(IrTensor):
    """A tensor that is the result of an operation, or an argument.

    Args:
        ir_value: The value in the module.
        dtype: The element type.
        part_of: The tensor and the index that it was read from, if any.
    """

    def __init__(
        self, ir_value: Value, dtype: torch.dtype, part_of: tuple[IrTensor, Any] | None = None
    ) -> None:
        super().__init__(ir_value.type, dtype)
        self._value = ir_value
        self._part_of = part_of

    def resolve_ir_values(self, proc_trace: TraceServices) -> Sequence[Value]:
        """Return the value."""
        return [self._value]

    def assign(self, value: Any) -> None:
        """Refer to another value from now on; the tensor that it was read from changes too.

        Raises:
            ProcedureTraceError: It was made outside of this loop body or branch, or the types
                differ.
        """
        trace = self.trace
        if self._part_of is None and self._scope is not trace.scope:
            trace.fail(
                f"{self!r} was made outside of this loop body or branch and cannot be changed "
                "inside; carry it, or store it in a mutable global"
            )
        new = trace.tensor_of_type(value, self, repr(self))
        if self._scope is trace.scope:
            self._value = new
            self.may_alias = getattr(value, "may_alias", MAY_ALIAS_ANY)
        if self._part_of is not None:
            base, index = self._part_of
            base[index] = IrImmediateTensor(new, self.dtype)


def build_tensor_dim_value(
    t: Value, dim: int, constant_cache: dict[int, Value] | None = None
) -> Value:
    """Emit the size of a dimension of a builtin tensor as a value of type index.

    Args:
        t: The tensor.
        dim: The dimension.
        constant_cache: Emitted index constants by number; new ones are added.
    """
    if constant_cache is None:
        return tensor_dialect.dim(t, index_constant(dim))
    if dim not in constant_cache:
        constant_cache[dim] = index_constant(dim)
    return tensor_dialect.dim(t, constant_cache[dim])


def _after_definition(value: Value) -> InsertionPoint:
    """Return the insertion point after the definition of a value, where it dominates its uses."""
    owner = value.owner
    if isinstance(owner, Block):
        return InsertionPoint.at_block_begin(owner)
    assert isinstance(owner, (Operation, OpView))
    return InsertionPoint.after(owner)
