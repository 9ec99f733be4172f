"""Branches and loops, as `torch.cond` and `torch.while_loop`.

Both take functions of tensors that see nothing around them and store nowhere: what a region uses
from outside becomes its input, and globals that it stores to become its results.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from iree.compiler.ir import Block, Operation, StringAttr, Type, Value
from torch.fx import Node

from ...errors import UnsupportedOpError
from . import effects
from .globals_and_calls import operations_in, operations_run_by
from .raiser import HandlerTable, Raiser
from .scope import Scope, dtype_of
from .source import Global, symbol_of
from .types import is_python_number, value_dtype

aten = torch.ops.aten

_CHECK = "util.status.check_ok"
_MAX_TRIPS = 2**63 - 1


@dataclass(frozen=True)
class _Region:
    """The finished graph of a branch or loop body, and the outer values that it takes."""

    scope: Scope
    outputs: Sequence[Node]

    def finish(self, raiser: Raiser, name: str, captured: Sequence[Node], single: bool) -> Node:
        """Add it to the surrounding graph with inputs for all of `captured`, in their order."""
        inside = [self.scope.use(outer) for outer in captured]
        own = [node for node in self.scope.graph.nodes if node.op == "placeholder"]
        self.scope.order([*(node for node in own if node not in inside), *inside])
        outputs = _distinct(self.scope, self.outputs)
        module = self.scope.finish(outputs[0] if single else tuple(outputs))
        return raiser.scope.attribute(raiser.unique(name), module)


def _distinct(scope: Scope, outputs: Sequence[Node]) -> list[Node]:
    """Return results that are no inputs and differ from each other, as torch asks for."""
    made: list[Node] = []
    for output in outputs:
        inside = scope.use(output)
        if inside.op == "placeholder" or inside in made:
            inside = scope.call(aten.clone.default, (inside,), {})
        made.append(inside)
    return made


def _separate(raiser: Raiser, nodes: Sequence[Node], beside: Sequence[Node] = ()) -> list[Node]:
    """Return values none of which is a view of another, as torch asks for inputs of regions."""
    made: list[Node] = []
    for node in nodes:
        computed = node.op == "call_function" or node in made or node in beside
        if computed and dtype_of(node) is not None:
            node = raiser.emit(aten.clone.default, node, dtype=dtype_of(node))
        made.append(node)
    return made


def _captured(*regions: _Region) -> list[Node]:
    """Return the outer values that any of some regions use."""
    return list(dict.fromkeys(outer for region in regions for outer in region.scope.captured))


def _stored(raiser: Raiser, op: Operation) -> list[Global]:
    """Return the globals that the regions of an operation store to."""
    symbols = dict.fromkeys(
        symbol_of(inner, "global")
        for inner in operations_run_by(raiser.source, op)
        if inner.name == "util.global.store"
    )
    return [raiser.source.globals[symbol] for symbol in symbols]


def _results(
    raiser: Raiser, op: Operation, node: Node, dtypes: Sequence[Any], stored: Sequence[Global],
    first: int = 0,
) -> None:  # fmt: skip
    """Take apart what a branch or loop gives: the operation's results, then globals."""
    items = [
        raiser.emit(operator.getitem, node, first + i, dtype=dtype)
        for i, dtype in enumerate(dtypes)
    ]
    raiser.state.update(
        zip((item.symbol for item in stored), items[len(op.results) :], strict=True)
    )
    values = zip(items, op.results, strict=False)
    raiser.bind(op, *[raiser.typed_as(item, result.type) for item, result in values])


def _if(raiser: Raiser, op: Operation) -> None:
    condition = raiser.value(op.operands[0])
    if not op.results and any(inner.name == _CHECK for inner in operations_in(op)):
        _check(raiser, op, condition)
        return
    blocks = [region.blocks[0] if len(region.blocks) else None for region in op.regions]
    if isinstance(condition, bool):
        block = blocks[0 if condition else 1]
        raiser.bind(op, *(raiser.values(raiser.run(block)) if block else ()))
        return
    stored = _stored(raiser, op)
    regions = [_branch(raiser, block, stored) for block in blocks]
    captured = _captured(*regions)
    branches = [region.finish(raiser, "branch", captured, False) for region in regions]
    target = torch.ops.higher_order.cond
    inputs = tuple(_separate(raiser, captured))
    node = raiser.emit(target, condition, *branches, inputs)
    dtypes = [dtype_of(output) for output in regions[0].outputs]
    if len(dtypes) > len(op.results) + len(stored):
        raiser.emit_effect(operator.getitem, node, 0)
        return
    _results(raiser, op, node, dtypes, stored)


def _branch(raiser: Raiser, block: Block | None, stored: Sequence[Global]) -> _Region:
    with raiser.nested() as scope:
        returned = raiser.run(block) if block else []
        outputs = [
            raiser.as_tensor(value, dtype_of(value) or value_dtype(result.type))
            for value, result in zip(raiser.values(returned), returned, strict=True)
        ]
        outputs += [raiser.current(item) for item in stored]
        # torch has no branches without results; one that only acts gives a number nobody uses.
        return _Region(scope, outputs or [raiser.as_tensor(0, torch.int64)])


def _check(raiser: Raiser, op: Operation, wrong: Any) -> None:
    """Raise a branch that stops the program as a check that its condition is false."""
    message = next(
        StringAttr(inner.attributes["message"]).value if "message" in inner.attributes else ""
        for inner in operations_in(op)
        if inner.name == _CHECK
    )
    if wrong is False or not raiser.options.effects:
        return
    holds = False if wrong is True else raiser.emit(aten.logical_not.default, wrong)
    raiser.emit_effect(effects.require, holds, message)


@dataclass(frozen=True)
class _Loop:
    """A loop over carried tensors: what it carries at first, its condition and its body.

    Attributes:
        initial: The first values; the last ones are those of the globals that it stores to.
        stored: These globals.
        condition: Takes the carried values; returns a bool.
        body: Takes the carried values; returns the next ones, without the globals.
    """

    initial: Sequence[Node]
    stored: Sequence[Global]
    condition: Callable[[Sequence[Node]], Any]
    body: Callable[[Sequence[Node]], Sequence[Any]]

    def emit(self, raiser: Raiser) -> Node:
        """Add the loop to the graph."""
        condition = self._region(raiser, self._holds)
        body = self._region(raiser, self._next)
        captured = _captured(condition, body)
        regions = [
            condition.finish(raiser, "loop_condition", captured, True),
            body.finish(raiser, "loop_body", captured, False),
        ]
        initial = tuple(_separate(raiser, self.initial, beside=captured))
        target = torch.ops.higher_order.while_loop
        return raiser.emit(target, *regions, initial, tuple(_separate(raiser, captured)))

    def _region(
        self, raiser: Raiser, compute: Callable[[Raiser, Sequence[Node]], list[Node]]
    ) -> _Region:
        with raiser.nested() as scope:
            inputs = [
                scope.placeholder(f"carried_{i}", dtype_of(first))
                for i, first in enumerate(self.initial)
            ]
            count = len(inputs) - len(self.stored)
            symbols = (item.symbol for item in self.stored)
            raiser.state.update(zip(symbols, inputs[count:], strict=True))
            return _Region(scope, compute(raiser, inputs[:count]))

    def _holds(self, raiser: Raiser, carried: Sequence[Node]) -> list[Node]:
        return [raiser.as_tensor(self.condition(carried), torch.bool)]

    def _next(self, raiser: Raiser, carried: Sequence[Node]) -> list[Node]:
        values = zip(self.body(carried), carried, strict=True)
        outputs = [
            raiser.as_tensor(value, _tensor_dtype(dtype_of(before))) for value, before in values
        ]
        return outputs + [raiser.current(item) for item in self.stored]


def _tensor_dtype(dtype: torch.dtype | None) -> torch.dtype:
    assert dtype is not None, "loops carry tensors"
    return dtype


def _initial(raiser: Raiser, values: Sequence[Value], stored: Sequence[Global]) -> list[Node]:
    raised = zip(raiser.values(values), values, strict=True)
    carried = [
        raiser.as_tensor(value, dtype_of(value) or value_dtype(operand.type))
        for value, operand in raised
    ]
    return carried + [raiser.current(item) for item in stored]


def _enter(raiser: Raiser, block: Block, values: Sequence[Any]) -> list[Value]:
    """Raise a block of a loop; return the operands of its last operation."""
    types: list[Type] = [argument.type for argument in block.arguments]
    pairs = zip(values, types, strict=True)
    raiser.bind_arguments(block, [_argument(raiser, value, type_) for value, type_ in pairs])
    return raiser.run(block)


def _argument(raiser: Raiser, value: Any, type_: Type) -> Any:
    is_torch_number = is_python_number(type_) and str(type_).startswith("!torch")
    return raiser.as_number(value) if is_torch_number else value


def _while(raiser: Raiser, op: Operation) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    last = list(before.operations)[-1].operation
    effects_there = {"util.global.store"} & {inner.name for inner in _run_in(raiser, before)}
    if [*last.operands][1:] != [*before.arguments] or effects_there:
        raise UnsupportedOpError("scf.while whose condition changes what it hands on")
    stored = _stored(raiser, op)
    loop = _Loop(
        _initial(raiser, op.operands, stored),
        stored,
        lambda carried: raiser.value(_enter(raiser, before, carried)[0]),
        lambda carried: raiser.values(_enter(raiser, after, carried)),
    )
    _results(raiser, op, loop.emit(raiser), [dtype_of(node) for node in loop.initial], stored)


def _run_in(raiser: Raiser, block: Block) -> list[Operation]:
    found: list[Operation] = []
    for view in block.operations:
        found.append(view.operation)
        found.extend(operations_run_by(raiser.source, view.operation))
    return found


def _for(raiser: Raiser, op: Operation) -> None:
    first, end, step = raiser.values(op.operands)[:3]
    stored = _stored(raiser, op)
    counter = raiser.as_tensor(first, torch.int64)
    limit, stride = (raiser.as_tensor(value, torch.int64) for value in (end, step))
    block = op.regions[0].blocks[0]

    def body(carried: Sequence[Node]) -> list[Any]:
        following = raiser.emit(aten.add.Tensor, carried[0], stride, dtype=torch.int64)
        return [following, *raiser.values(_enter(raiser, block, carried))]

    loop = _Loop(
        [counter, *_initial(raiser, [*op.operands][3:], stored)],
        stored,
        lambda carried: raiser.emit(aten.lt.Tensor, carried[0], limit, dtype=torch.bool),
        body,
    )
    dtypes = [dtype_of(node) for node in loop.initial][1:]
    _results(raiser, op, loop.emit(raiser), dtypes, stored, first=1)


def _torch_loop(raiser: Raiser, op: Operation) -> None:
    """Raise `torch.prim.Loop`: at most so many rounds, and while a condition holds."""
    trips, again = raiser.values(op.operands)[:2]
    stored = _stored(raiser, op)
    block = op.regions[0].blocks[0]
    counter, going = raiser.as_tensor(0, torch.int64), raiser.as_tensor(again, torch.bool)
    bounded = not (isinstance(trips, int) and trips == _MAX_TRIPS)
    limit = raiser.as_tensor(trips, torch.int64)

    def condition(carried: Sequence[Node]) -> Node:
        if not bounded:
            return carried[1]
        below = raiser.emit(aten.lt.Tensor, carried[0], limit, dtype=torch.bool)
        return raiser.emit(aten.logical_and.default, carried[1], below, dtype=torch.bool)

    def body(carried: Sequence[Node]) -> list[Any]:
        number, _, *rest = carried
        following = raiser.emit(aten.add.Scalar, number, 1, dtype=torch.int64)
        return [following, *raiser.values(_enter(raiser, block, [number, *rest]))]

    initial = [counter, going, *_initial(raiser, [*op.operands][2:], stored)]
    loop = _Loop(initial, stored, condition, body)
    dtypes = [dtype_of(node) for node in initial][2:]
    _results(raiser, op, loop.emit(raiser), dtypes, stored, first=2)


HANDLERS: HandlerTable = {
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
    "torch.prim.If": _if,
    "torch.prim.Loop": _torch_loop,
}
"""Operations with regions."""

TERMINATORS = (
    "func.return", "util.return", "scf.yield", "scf.condition", "torch.prim.If.yield",
    "torch.prim.Loop.condition",
)  # fmt: skip
"""Operations that end a block; who raises the block reads their operands."""
