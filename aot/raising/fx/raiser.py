"""The walk over a function: the handler of each operation adds its nodes to the graph."""

from __future__ import annotations

import contextlib
import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from iree.compiler.ir import Block, Operation, Type, Value
from torch import fx
from torch.fx import Node

from ...compat.symbolic import check
from ...spec.errors import PeltonError, SourceLocation, UnsupportedOpError
from ...spec.locations import LOCATION, location_of_op
from .scope import KEPT, Scope, dtype_of, typed
from .source import Global, ModuleSource
from .types import tensor_type, value_dtype

aten = torch.ops.aten

_OF_MODULES = frozenset(dir(fx.GraphModule(torch.nn.Module(), fx.Graph())))
"""What graph modules have themselves, such as `graph` and `code`: no weight can be called so."""

Handler: TypeAlias = "Callable[[Raiser, Operation], None]"
"""Raises one operation: reads its operands, adds to the graph, binds its results."""


@dataclass(frozen=True)
class Options:
    """How functions are raised.

    Attributes:
        weights_as_inputs: Make the weights inputs of the graph; else they are its buffers.
        effects: Keep checks and printing in the graph.
    """

    weights_as_inputs: bool = False
    effects: bool = True


class Raiser:
    """Builds the graph of one function.

    Values of the module are Python numbers, texts, None, lists of values, or nodes. A node with an
    element type is a tensor; one without is a symbolic number, or a list.

    Args:
        source: The module.
        options: How to raise.
        handler_of: Returns the handler of an operation.

    Attributes:
        scope: The graph that is being filled.
        state: The present value of each mutable global that was loaded or stored to.
        state_inputs: The input that holds the value of each such global at the start.
        weights: The node of each immutable global that is an input.
    """

    def __init__(
        self, source: ModuleSource, options: Options, handler_of: Callable[[Operation], Handler]
    ) -> None:
        self.source = source
        self.options = options
        self.root = self.scope = Scope()
        self.state: dict[str, Node] = {}
        self.state_inputs: dict[str, Node] = {}
        self.weights: dict[str, Node] = {}
        self._handler_of = handler_of
        self._values: dict[Value, Any] = {}
        self._loaded: dict[str, Node] = {}
        self._names: dict[str, int] = {}
        self._location: SourceLocation | None = None

    # Values of the module.

    def value(self, value: Value) -> Any:
        """Return what a value of the module was raised to."""
        return self._values[value]

    def values(self, values: Sequence[Value]) -> list[Any]:
        """Return what several values were raised to."""
        return [self._values[value] for value in values]

    def bind(self, op: Operation, *values: Any) -> None:
        """Say what the results of an operation are."""
        self._values.update(zip(op.results, values, strict=True))

    def bind_arguments(self, block: Block, values: Sequence[Any]) -> None:
        """Say what the arguments of a block are."""
        self._values.update(zip(block.arguments, values, strict=True))

    def run(self, block: Block) -> list[Value]:
        """Raise the operations of a block; return the operands of its last one.

        Raises:
            UnsupportedOpError: An operation cannot be raised; names the user's line.
        """
        self.run_body(block)
        return [*[*block.operations][-1].operation.operands]

    def run_body(self, block: Block) -> None:
        """Raise the operations of a block but the last one.

        Raises:
            UnsupportedOpError: An operation cannot be raised; names the user's line.
        """
        for op in [view.operation for view in block.operations][:-1]:
            self._location = location_of_op(op) or self._location
            try:
                self._handler_of(op)(self, op)
            except PeltonError:
                raise
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())[:400]
                raise UnsupportedOpError(
                    f"{op.name} cannot be raised: {reason}",
                    operators=(op.name,),
                    location=location_of_op(op),
                ) from error

    @contextlib.contextmanager
    def called(self) -> Iterator[None]:
        """Raise the body of another function, in which values of this one are not known."""
        outside, self._values = self._values, {}
        try:
            yield
        finally:
            self._values = outside

    # The graph.

    def emit(
        self,
        target: Callable[..., Any],
        *args: Any,
        dtype: torch.dtype | None = None,
        keywords: Mapping[str, Any] | None = None,
    ) -> Node:
        """Add a call to the graph; it has the user's line as its stack trace.

        Args:
            target: An operator or function.
            args: Its arguments.
            dtype: The element type of its result; None: a number, a list, or nothing.
            keywords: Its keyword arguments.
        """
        node = typed(self.scope.call(target, args, dict(keywords or {})), dtype)
        node.meta[LOCATION] = self._location
        node.stack_trace = _stack_trace(self._location)
        return node

    def emit_effect(self, target: Callable[..., Any], *args: Any) -> None:
        """Add a call that is there for what it does, unless effects are left out."""
        if self.options.effects:
            self.emit(target, *args).meta[KEPT] = True

    @contextlib.contextmanager
    def nested(self) -> Iterator[Scope]:
        """Fill the graph of a branch or loop body; its stores are forgotten afterwards."""
        outer, state = self.scope, dict(self.state)
        self.scope = Scope(outer)
        try:
            yield self.scope
        finally:
            self.scope, self.state = outer, state

    def unique(self, base: str) -> str:
        """Return a new name for an attribute of a graph."""
        name = base
        while name in self._names:
            self._names[base] += 1
            name = f"{base}_{self._names[base]}"
        self._names[name] = 0
        return name

    def constant(self, tensor: torch.Tensor) -> Node:
        """Return the node of a tensor that the graph owns."""
        return self.root.attribute(self.unique("constant"), tensor, tensor.dtype)

    # Numbers and 0-d tensors.

    def as_tensor(self, value: Any, dtype: torch.dtype) -> Node:
        """Return a number as a 0-d tensor, a tensor as one of an element type."""
        found = dtype_of(value)
        if found is None:
            made = {"dtype": dtype}
            return self.emit(aten.scalar_tensor.default, value, dtype=dtype, keywords=made)
        return value if found == dtype else self.convert(value, dtype)

    def convert(self, tensor: Node, dtype: torch.dtype) -> Node:
        """Return a tensor with its elements converted."""
        return self.emit(aten.to.dtype, tensor, dtype, dtype=dtype)

    def as_number(self, value: Any) -> Any:
        """Return a 0-d tensor as a Python number, known when the graph runs."""
        return value if dtype_of(value) is None else self.emit(aten.item.default, value)

    def as_size(self, value: Any) -> Any:
        """Return a number that may be the size of a tensor."""
        if dtype_of(value) is None:
            return value
        size = self.as_number(value)
        self.emit(check, self.emit(_not_negative, size)).meta[KEPT] = True
        return size

    def typed_as(self, value: Any, type_: Type) -> Any:
        """Return a value in the form of a type: a tensor, or for torch's numbers a number."""
        if str(type_) in ("!torch.int", "!torch.float", "!torch.bool"):
            return self.as_number(value)
        return self.as_tensor(value, dtype_of(value) or value_dtype(type_))

    # Globals.

    def load(self, item: Global) -> Any:
        """Return the present value of a global, in its storage type."""
        if not item.mutable:
            return self._load_weight(item)
        node = self.current(item)
        return node if item.storage == item.dtype else self.convert(node, item.storage)

    def current(self, item: Global) -> Node:
        """Return the present value of a mutable global, in the type that it stands for."""
        if item.symbol not in self.state:
            if item.symbol not in self.state_inputs:
                name = self.unique(identifier(f"state_{item.name}"))
                self.state_inputs[item.symbol] = self.root.placeholder(name, item.dtype)
            self.state[item.symbol] = self.state_inputs[item.symbol]
        return self.state[item.symbol]

    def store(self, item: Global, value: Any) -> None:
        """Give a global another value, of its storage type."""
        tensor = self.as_tensor(value, item.storage)
        if item.storage != item.dtype:
            tensor = self.emit(aten.ne.Scalar, tensor, 0, dtype=item.dtype)
        self.state[item.symbol] = tensor

    def _load_weight(self, item: Global) -> Any:
        if item.is_number:
            return self.source.initial(item).item()
        if item.symbol not in self._loaded:
            if self.options.weights_as_inputs and item.shape:
                name = self.unique(identifier(f"parameter_{item.name}"))
                node = self.root.placeholder(name, item.storage)
                self.weights[item.symbol] = node
            else:
                name = identifier(item.name)
                name = self.unique(f"weight_{name}" if name in _OF_MODULES else name)
                node = self.root.attribute(name, self.source.initial(item), item.storage)
            self._loaded[item.symbol] = node
        return self._loaded[item.symbol]


def _stack_trace(location: SourceLocation | None) -> str | None:
    """Return a place in the form that torch keeps it in, and takes along when it traces."""
    return f'File "{location.file}", line {location.line}, in forward' if location else None


def _not_negative(size: Any) -> Any:
    return size >= 0


def identifier(name: str) -> str:
    """Return a name as Python allows it for a variable.

    Example:
        >>> identifier("cache['keys'][0]"), identifier("0.weight")
        ('cache_keys_0', '_0_weight')
    """
    joined = re.sub(r"\W+", "_", name).strip("_")
    usable = joined.isidentifier() and not keyword.iskeyword(joined)
    return joined if usable else f"_{joined}"


def extents(raiser: Raiser, type_: Type, dynamic: Sequence[Value]) -> list[Any]:
    """Return the sizes of a tensor type, with values for its dynamic ones.

    Args:
        raiser: The walk over the function.
        type_: The tensor type.
        dynamic: The values of its dynamic sizes, in order.
    """
    tensor = tensor_type(type_)
    assert tensor is not None
    given = iter(dynamic)
    return [
        raiser.as_size(raiser.value(next(given))) if size is None else size for size in tensor.shape
    ]


HandlerTable: TypeAlias = Mapping[str, Handler]
"""The handlers of a family of operations, by name."""
