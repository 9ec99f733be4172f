"""Control-flow graphs: functions of several blocks, structured into branches and loops again.

Procedures that store to globals within branches or loops come as blocks that branch to each other
(`cf.br`, `cf.cond_br`). They were structured, and so they are here: blocks from which a way leads
back are loops with one way out, and the two ways of a condition meet again.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from iree.compiler.ir import Block, DenseI32ArrayAttr, Operation, Region, Value
from torch.fx import Node

from ...spec.errors import UnsupportedOpError
from ...spec.locations import location_of_op
from .control_flow import CHECK, raise_check, stored_by, tensors_of, typed_as
from .raiser import Raiser
from .regions import Loop, choose

_Blocks = frozenset[int]


def run_region(raiser: Raiser, region: Region) -> list[Value]:
    """Raise the body of a function; return the values that it returns.

    Raises:
        UnsupportedOpError: Its blocks are not those of branches and loops.
    """
    blocks = [*region.blocks]
    if len(blocks) == 1:
        return raiser.run(blocks[0])
    end = _Body(raiser, blocks).run(0, frozenset(), frozenset())
    if end is None or end.name.startswith("cf."):
        raise _unstructured(region.owner.operation)
    return [*end.operands]


class _Body:
    """The blocks of a function, by number."""

    def __init__(self, raiser: Raiser, blocks: Sequence[Block]) -> None:
        self._raiser = raiser
        self._blocks = blocks
        self._last = [[*block.operations][-1].operation for block in blocks]
        self._next = [[blocks.index(target) for target in last.successors] for last in self._last]

    def run(
        self, at: int, stops: _Blocks, loops: _Blocks, inside: _Blocks = frozenset()
    ) -> Operation | None:
        """Raise blocks from one on.

        Args:
            at: The block; its arguments are bound.
            stops: Blocks to stop before.
            loops: The first blocks of the loops around it.
            inside: Stop at the condition that leads out of these.

        Returns:
            The operation at whose end it stopped; None: before one of `stops`.
        """
        while at not in stops:
            if at not in loops and at in self._reach(self._next[at], loops):
                at = self._loop(at, loops)
                continue
            self._raiser.run_body(self._blocks[at])
            last, targets = self._last[at], self._next[at]
            if not targets or (len(targets) == 2 and inside and not {*targets} <= inside):
                return last
            at = self._go(last, 0) if len(targets) == 1 else self._branch(at, stops, loops)
        return None

    def _go(self, last: Operation, way: int) -> int:
        """Bind the arguments of the block at the end of a way; return its number."""
        target = self._blocks.index(last.successors[way])
        operands = [*last.operands]
        if last.name == "cf.cond_br":
            _, yes, _ = DenseI32ArrayAttr(last.attributes["operandSegmentSizes"])
            operands = operands[1 : 1 + yes] if way == 0 else operands[1 + yes :]
        self._raiser.bind_arguments(self._blocks[target], self._raiser.values(operands))
        return target

    def _reach(self, starts: Sequence[int], ends: _Blocks) -> set[int]:
        """Return the blocks to which ways lead that do not go on behind `ends`."""
        found: set[int] = set()
        pending = [*starts]
        while pending:
            at = pending.pop()
            if at not in found:
                found.add(at)
                pending.extend(() if at in ends else self._next[at])
        return found

    def _branch(self, at: int, stops: _Blocks, loops: _Blocks) -> int:
        """Raise both ways of a condition; return the block where they meet."""
        last, ends = self._last[at], stops | loops
        yes, no = (self._reach([target], ends) for target in self._next[at])
        common = yes & no
        meet = next((b for b in common if common <= self._reach([b], ends)), None)
        if meet is None:
            raise _unstructured(last)
        condition = self._raiser.value(last.operands[0])
        ways = sorted((yes | no) - self._reach([meet], ends))
        ops = [view.operation for way in ways for view in self._blocks[way].operations]
        if any(op.name == CHECK for op in ops):
            raise_check(self._raiser, ops, condition)
            return self._go(last, 1)
        if isinstance(condition, bool):
            self.run(self._go(last, 0 if condition else 1), stops | {meet}, loops)
            return meet
        block = self._blocks[meet]

        def follow(way: int) -> list[Node]:
            self.run(self._go(last, way), stops | {meet}, loops)
            return tensors_of(self._raiser, [*block.arguments])

        stored = stored_by(self._raiser, ops)
        results = choose(self._raiser, condition, [lambda: follow(0), lambda: follow(1)], stored)
        self._bind(block, results)
        return meet

    def _loop(self, first: int, loops: _Blocks) -> int:
        """Raise a loop; return the block behind it."""
        raiser, block, around = self._raiser, self._blocks[first], loops | {first}
        reached = self._reach(self._next[first], around)
        members = frozenset(b for b in reached if first in self._reach(self._next[b], around))
        members |= {first}
        if members >= {target for member in members for target in self._next[member]}:
            raise _unstructured(self._last[first])

        def before(carried: Sequence[Node]) -> Operation:
            self._bind(block, carried)
            last = self.run(first, frozenset(), around, members)
            if last is None or last.name != "cf.cond_br":
                raise _unstructured(self._last[first])
            return last

        def stays(last: Operation) -> int:
            return 0 if self._blocks.index(last.successors[0]) in members else 1

        def condition(carried: Sequence[Node]) -> Node:
            last = before(carried)
            holds = raiser.as_tensor(raiser.value(last.operands[0]), torch.bool)
            return (
                holds
                if stays(last) == 0
                else raiser.emit(torch.ops.aten.logical_not.default, holds, dtype=torch.bool)
            )

        def body(carried: Sequence[Node]) -> list[Node]:
            last = before(carried)
            self.run(self._go(last, stays(last)), frozenset({first}), around)
            return tensors_of(raiser, [*block.arguments])

        ops = [view.operation for member in members for view in self._blocks[member].operations]
        initial = tensors_of(raiser, [*block.arguments])
        last = before(Loop(initial, stored_by(raiser, ops), condition, body).emit(raiser))
        return self._go(last, 1 - stays(last))

    def _bind(self, block: Block, tensors: Sequence[Node]) -> None:
        types = [argument.type for argument in block.arguments]
        self._raiser.bind_arguments(block, typed_as(self._raiser, tensors, types))


def _unstructured(op: Operation) -> UnsupportedOpError:
    return UnsupportedOpError(
        "blocks that are not those of branches and loops",
        operators=(op.name,),
        location=location_of_op(op),
    )
