"""Operations with regions: branches and loops of procedures, and those of the torch dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from iree.compiler.ir import Block, Operation, StringAttr, Type, Value
from torch.fx import Node

from . import effects
from .calls import operations_in, operations_run_by
from .raiser import HandlerTable, Raiser
from .regions import Loop, choose
from .scope import dtype_of
from .source import Global, symbol_of
from .types import value_dtype

aten = torch.ops.aten

CHECK = "util.status.check_ok"
"""The operation that stops the program with a message."""

_MAX_TRIPS = 2**63 - 1


def stored_by(raiser: Raiser, ops: Iterable[Operation]) -> list[Global]:
    """Return the globals that operations, their regions and callees store to."""
    symbols = dict.fromkeys(
        symbol_of(inner, "global")
        for op in ops
        for inner in (op, *operations_run_by(raiser.source, op))
        if inner.name == "util.global.store"
    )
    return [raiser.source.globals[symbol] for symbol in symbols]


def tensors_of(raiser: Raiser, values: Sequence[Value]) -> list[Node]:
    """Return values as tensors, in the types that they have in the module."""
    return [
        raiser.as_tensor(raised, dtype_of(raised) or value_dtype(value.type))
        for raised, value in zip(raiser.values(values), values, strict=True)
    ]


def typed_as(raiser: Raiser, tensors: Sequence[Node], types: Sequence[Type]) -> list[Any]:
    """Return tensors in the forms that values of some types have.

    Args:
        raiser: The walk over the function.
        tensors: The nodes, one for each type.
        types: The MLIR types of the values.
    """
    return [raiser.typed_as(value, type_) for value, type_ in zip(tensors, types, strict=True)]


def raise_check(raiser: Raiser, ops: Iterable[Operation], wrong: Any) -> None:
    """Raise a branch that stops the program as a check that its condition is false.

    Args:
        raiser: The walk over the function.
        ops: The operations of the branch; one of them is the check, with its message.
        wrong: The condition of the branch: a node, or a Python bool.
    """
    message = next(
        StringAttr(op.attributes["message"]).value if "message" in op.attributes else ""
        for op in ops
        if op.name == CHECK
    )
    if wrong is False or not raiser.options.effects:
        return
    holds = False if wrong is True else raiser.emit(aten.logical_not.default, wrong)
    raiser.emit_effect(effects.require, holds, message)


def _if(raiser: Raiser, op: Operation) -> None:
    condition = raiser.value(op.operands[0])
    if not op.results and any(inner.name == CHECK for inner in operations_in(op)):
        raise_check(raiser, operations_in(op), condition)
        return
    blocks = [region.blocks[0] if len(region.blocks) else None for region in op.regions]
    if isinstance(condition, bool):
        block = blocks[0 if condition else 1]
        raiser.bind(op, *(raiser.values(raiser.run(block)) if block else ()))
        return
    branches = [lambda block=block: _yielded(raiser, block) for block in blocks]
    results = choose(raiser, condition, branches, stored_by(raiser, [op]))
    raiser.bind(op, *typed_as(raiser, results, [result.type for result in op.results]))


def _yielded(raiser: Raiser, block: Block | None) -> list[Node]:
    return tensors_of(raiser, raiser.run(block)) if block else []


def _enter(raiser: Raiser, block: Block, carried: Sequence[Any]) -> list[Value]:
    """Raise a block of a loop; return the operands of its last operation."""
    types = [argument.type for argument in block.arguments]
    raiser.bind_arguments(block, typed_as(raiser, carried, types))
    return raiser.run(block)


def _while(raiser: Raiser, op: Operation) -> None:
    before, after = (region.blocks[0] for region in op.regions)

    def condition(carried: Sequence[Node]) -> Any:
        return raiser.value(_enter(raiser, before, carried)[0])

    def body(carried: Sequence[Node]) -> list[Any]:
        forwarded = tensors_of(raiser, _enter(raiser, before, carried)[1:])
        return raiser.values(_enter(raiser, after, forwarded))

    loop = Loop(tensors_of(raiser, op.operands), stored_by(raiser, [op]), condition, body)
    last = _enter(raiser, before, loop.emit(raiser))
    raiser.bind(op, *raiser.values(last[1:]))


def _for(raiser: Raiser, op: Operation) -> None:
    first, limit, stride = tensors_of(raiser, [*op.operands][:3])
    block = op.regions[0].blocks[0]

    def condition(carried: Sequence[Node]) -> Node:
        return raiser.emit(aten.lt.Tensor, carried[0], limit, dtype=torch.bool)

    def body(carried: Sequence[Node]) -> list[Any]:
        following = raiser.emit(aten.add.Tensor, carried[0], stride, dtype=dtype_of(carried[0]))
        return [following, *raiser.values(_enter(raiser, block, carried))]

    initial = [first, *tensors_of(raiser, [*op.operands][3:])]
    _, *results = Loop(initial, stored_by(raiser, [op]), condition, body).emit(raiser)
    raiser.bind(op, *results)


def _torch_loop(raiser: Raiser, op: Operation) -> None:
    """Raise `torch.prim.Loop`: at most so many rounds, and while a condition holds."""
    trips, again = raiser.values(op.operands)[:2]
    block = op.regions[0].blocks[0]
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

    going = raiser.as_tensor(again, torch.bool)
    counter = raiser.as_tensor(0, torch.int64)
    initial = [counter, going, *tensors_of(raiser, [*op.operands][2:])]
    _, _, *results = Loop(initial, stored_by(raiser, [op]), condition, body).emit(raiser)
    raiser.bind(op, *typed_as(raiser, results, [result.type for result in op.results]))


HANDLERS: HandlerTable = {
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
    "torch.prim.If": _if,
    "torch.prim.Loop": _torch_loop,
}
"""Branches and loops."""

TERMINATORS = (
    "func.return", "util.return", "scf.yield", "scf.condition", "torch.prim.If.yield",
    "torch.prim.Loop.condition", "cf.br", "cf.cond_br",
)  # fmt: skip
"""Operations that end a block; who raises the block reads their operands."""
