"""Control flow of a procedure: branches and loops over traced values, as `scf` operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from iree.compiler.ir import (
    Block,
    IndexType,
    Location,
    Operation,
    RankedTensorType,
    Type,
    Value,
)

from pelton.runtime.call import pytrees

from ..globals.live_globals import plain_tree
from ..values import arithmetic, tensor_ops
from ..values.arithmetic import is_number
from ..values.conversions import constant_of, index_of
from ..values.current import current_ir_trace, ir_trace_or_none
from ..values.intrinsics import Intrinsic
from ..values.scalars import IrImmediateScalar, IrScalar, scalar_of, scalar_of_type
from ..values.services import Scope, TraceServices
from ..values.sizes import DYNAMIC, is_dynamic
from ..values.tensors import MAY_ALIAS_ANY, IrImmediateTensor, IrTensor


def cond(pred: Any, then: Callable[..., Any], else_: Callable[..., Any], *operands: Any) -> Any:
    """Run one of two functions, selected by a bool when the program runs.

    Both are traced. Their results must have the same structure and one type for each leaf; a
    Python number takes the type of the other branch. Either may store to globals.

    Args:
        pred: A traced bool, a tensor of one bool, or a Python bool, which selects now.
        then: Called with the operands where `pred` is true.
        else_: Called with the operands where it is false.
        operands: Any values; the functions may also close over values.

    Returns:
        The result of the function that ran.

    Raises:
        ProcedureTraceError: `pred` is no bool, or the results differ in structure or type.

    Example:
        >>> cond(True, lambda x: x + 1, lambda x: x - 1, 3)
        4
    """
    if isinstance(pred, bool) or ir_trace_or_none() is None:
        return then(*operands) if pred else else_(*operands)
    trace = current_ir_trace()
    condition = _condition(trace, pred, "aot.cond")
    branches = [_Branch(trace, branch, operands) for branch in (then, else_)]
    if branches[0].tree != branches[1].tree:
        trace.fail(
            f"the branches of aot.cond return {pytrees.render(branches[0].tree)} and "
            f"{pytrees.render(branches[1].tree)}; they must return the same structure"
        )
    yes, no = branches
    types = [
        _common_type(trace, a, b, f"result {path} of the branches")
        for a, b, path in zip(yes.leaves, no.leaves, _paths(yes.tree, "result"), strict=True)
    ]
    for branch in branches:
        branch.finish(types)
    op = _emit(
        trace, "scf.if", [leaf_type.type for leaf_type in types], [condition], [yes.block, no.block]
    )
    return pytrees.unflatten(yes.tree, _values(types, op.results))


def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], carry: Any) -> Any:
    """Repeat a function while a condition holds when the program runs.

    Args:
        cond: Takes the carry; returns a traced bool, or a tensor of one bool.
        body: Takes the carry; returns the next one, of the same structure and types.
        carry: The initial carry: any tree of tensors and numbers. A Python int becomes an i64, a
            float an f32. None where the loop only stores to globals.

    Returns:
        The last carry.

    Raises:
        ProcedureTraceError: The body returns another structure or type than it takes.

    Example:
        >>> while_loop(lambda n: n < 10, lambda n: n * 2, 3)
        12
    """
    if ir_trace_or_none() is None:
        while cond(carry):
            carry = body(carry)
        return carry
    trace = current_ir_trace()
    loop = _Carry(trace, carry)
    before, after = loop.block(), loop.block()
    with trace.region(before):
        again = _condition(trace, cond(loop.received(before.arguments)), "the condition")
        with trace.emitting():
            Operation.create("scf.condition", operands=[again, *before.arguments])
    with trace.region(after):
        loop.emit_yield(body(loop.received(after.arguments)))
    op = _emit(trace, "scf.while", loop.types, loop.initial, [before, after])
    return loop.received(op.results)


def for_loop(n: Any, body: Callable[[Any, Any], Any], carry: Any = None) -> Any:
    """Repeat a function a number of times that may be traced.

    Args:
        n: The number of iterations: an integer, traced or not; below 1 there are none.
        body: Takes the iteration number (from 0, of type index) and the carry; returns the next
            carry, of the same structure and types.
        carry: The initial carry: any tree of tensors and numbers. A Python int becomes an i64, a
            float an f32. None where the loop only stores to globals.

    Returns:
        The last carry.

    Raises:
        ProcedureTraceError: The body returns another structure or type than it takes.

    Example:
        >>> for_loop(3, lambda i, total: total + i, 10)
        13
    """
    if ir_trace_or_none() is None:
        for turn in range(n):
            carry = body(turn, carry)
        return carry
    trace = current_ir_trace()
    loop = _Carry(trace, carry)
    count = index_of(trace, n)
    block = loop.block(leading=[IndexType.get(trace.context)])
    with trace.region(block):
        number = IrImmediateScalar(block.arguments[0])
        loop.emit_yield(body(number, loop.received(list(block.arguments)[1:])))
    with trace.emitting():
        low, step = arithmetic.index_constant(0), arithmetic.index_constant(1)
        operands = [low, count.ir_value, step, *loop.initial]
    op = _emit(trace, "scf.for", loop.types, operands, [block])
    return loop.received(op.results)


@dataclass(frozen=True)
class _LeafType:
    """The type of a carried leaf or of a result: a tensor type with its dtype, or a scalar type."""

    type: Type
    dtype: torch.dtype | None

    def traced(self, value: Value) -> Intrinsic:
        if self.dtype is None:
            return IrImmediateScalar(value)
        tensor = IrImmediateTensor(value, self.dtype)
        tensor.may_alias = MAY_ALIAS_ANY
        return tensor

    def describe(self) -> str:
        return str(self.type)


def _condition(trace: TraceServices, value: Any, what: str) -> Value:
    if isinstance(value, IrTensor):
        value = value.item()
    if isinstance(value, bool):
        value = scalar_of(trace, value)
    if not isinstance(value, IrScalar) or value.kind != "i1":
        trace.fail(f"{what} takes a bool, got {value!r}; compare it, as in `x != 0`")
    return value.ir_value


def _leaves(trace: TraceServices, value: Any, what: str) -> tuple[pytrees.Tree, list[Any]]:
    """Return the structure of a tree of values, and its leaves: traced values and numbers."""
    tree, leaves = pytrees.describe(
        plain_tree(value), lambda leaf: isinstance(leaf, (Intrinsic, torch.Tensor))
    )
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            leaves[index] = constant_of(trace, leaf)
        elif not isinstance(leaf, Intrinsic) and not is_number(leaf):
            trace.fail(
                f"{what} holds a {type(leaf).__name__} ({leaf!r:.60}); use tensors and numbers"
            )
    return tree, leaves


def _paths(tree: pytrees.Tree, root: str) -> list[str]:
    paths = pytrees.leaf_paths(tree, root)
    return [paths[index] for index in sorted(paths)]


def _type_of(trace: TraceServices, leaf: Any) -> _LeafType:
    if isinstance(leaf, IrTensor):
        return _LeafType(leaf.ir_type, leaf.dtype)
    if isinstance(leaf, IrScalar):
        return _LeafType(leaf.ir_type, None)
    with trace.context:
        return _LeafType(Type.parse(arithmetic.kind_of_literal(leaf, None)), None)


def _value_of(trace: TraceServices, leaf: Any, leaf_type: _LeafType, where: str) -> Value:
    """Return a leaf as a value of a type; sizes may become dynamic, numbers are converted."""
    if leaf_type.dtype is None:
        if isinstance(leaf, IrTensor):
            trace.fail(f"{where} is {leaf}, but must be a number of type {leaf_type.describe()}")
        return scalar_of_type(trace, leaf, str(leaf_type.type), where)
    shape = list(leaf_type.type.shape)  # type: ignore[attr-defined]
    fits = isinstance(leaf, IrTensor) and leaf.dtype == leaf_type.dtype and leaf.rank == len(shape)
    if not fits or not all(
        is_dynamic(target) or target == size
        for target, size in zip(shape, leaf.type_shape, strict=True)
    ):
        trace.fail(
            f"{where} is {leaf!s}, but must be {leaf_type.describe()}; element type and shape must "
            "not change. A size that changes must be dynamic from the start"
        )
    return tensor_ops.emit_cast(trace, leaf, shape)


def _common_type(trace: TraceServices, left: Any, right: Any, where: str) -> _LeafType:
    """Return the type of a result, of which either branch has a leaf."""
    if is_number(left) and not is_number(right):
        left, right = right, left
    leaf_type = _type_of(trace, left)
    other = _type_of(trace, right)
    if leaf_type.dtype is None or other.dtype is None or leaf_type.type == other.type:
        return leaf_type
    shapes = (leaf_type.type.shape, other.type.shape)  # type: ignore[attr-defined]
    if leaf_type.dtype != other.dtype or len(shapes[0]) != len(shapes[1]):
        trace.fail(f"{where} are {left} and {right}; they must be of one type")
    shape = [a if a == b else DYNAMIC for a, b in zip(*shapes, strict=True)]
    with trace.context, Location.unknown():
        element = leaf_type.type.element_type  # type: ignore[attr-defined]
        return _LeafType(RankedTensorType.get(shape, element), leaf_type.dtype)


def _values(types: Sequence[_LeafType], values: Sequence[Value]) -> list[Intrinsic]:
    return [leaf_type.traced(value) for leaf_type, value in zip(types, values, strict=True)]


def _new_block(trace: TraceServices, types: Sequence[Type] = ()) -> Block:
    """Return a block with arguments of some types, to be moved into an operation later."""
    location = trace.location()
    with trace.context, location:
        holder = Operation.create("builtin.module", regions=1, ip=False)
        return Block.create_at_start(holder.regions[0], list(types), [location] * len(types))


def _emit(
    trace: TraceServices,
    name: str,
    results: Sequence[Type],
    operands: Sequence[Value],
    blocks: Sequence[Block],
) -> Operation:
    """Emit an operation with finished blocks as its regions."""
    with trace.emitting():
        op = Operation.create(
            name, results=list(results), operands=list(operands), regions=len(blocks), ip=False
        )
    for block, region in zip(blocks, op.regions, strict=True):
        block.append_to(region)
    trace.ip.insert(op)
    return op


class _Branch:
    """A traced branch, whose yield is emitted once the types of both branches are known."""

    def __init__(
        self, trace: TraceServices, function: Callable[..., Any], operands: Sequence[Any]
    ) -> None:
        self._trace = trace
        self._scope = Scope(trace.scope)
        self.block = _new_block(trace)
        with trace.region(self.block, self._scope):
            self.tree, self.leaves = _leaves(trace, function(*operands), "a branch's result")

    def finish(self, types: Sequence[_LeafType]) -> None:
        """Emit the yield of the results, as values of some types."""
        trace = self._trace
        paths = _paths(self.tree, "result")
        with trace.region(self.block, self._scope), trace.emitting():
            values = [
                _value_of(trace, leaf, leaf_type, f"{path} of aot.cond")
                for leaf, leaf_type, path in zip(self.leaves, types, paths, strict=True)
            ]
            Operation.create("scf.yield", operands=values)


class _Carry:
    """The carry of a loop: its structure, the types of its leaves and their initial values."""

    def __init__(self, trace: TraceServices, carry: Any) -> None:
        self._trace = trace
        self._tree, leaves = _leaves(trace, carry, "the carry")
        self._paths = _paths(self._tree, "carry")
        self._types = [_type_of(trace, leaf) for leaf in leaves]
        with trace.emitting():
            self.initial = self._convert(leaves)

    @property
    def types(self) -> list[Type]:
        return [leaf_type.type for leaf_type in self._types]

    def block(self, leading: Sequence[Type] = ()) -> Block:
        return _new_block(self._trace, [*leading, *self.types])

    def received(self, values: Sequence[Value]) -> Any:
        """Return the carry with values of the module as leaves."""
        return pytrees.unflatten(self._tree, _values(self._types, values))

    def emit_yield(self, result: Any) -> None:
        """Emit the yield of the next carry."""
        trace = self._trace
        tree, leaves = _leaves(trace, result, "the loop body's result")
        if tree != self._tree:
            trace.fail(
                f"the loop body returns {pytrees.render(tree)}, but takes "
                f"{pytrees.render(self._tree)}; it must return the next carry"
            )
        with trace.emitting():
            Operation.create("scf.yield", operands=self._convert(leaves))

    def _convert(self, leaves: Sequence[Any]) -> list[Value]:
        return [
            _value_of(self._trace, leaf, leaf_type, path)
            for leaf, leaf_type, path in zip(leaves, self._types, self._paths, strict=True)
        ]
