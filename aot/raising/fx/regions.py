"""`torch.cond` and `torch.while_loop` nodes, around the graphs of their regions.

Both take functions of tensors that see nothing around them and store nowhere: what a region uses
from outside becomes its input, and globals that it stores to become its results.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from .raiser import Raiser
from .scope import Scope, dtype_of, typed
from .source import Global

aten = torch.ops.aten


@dataclass(frozen=True)
class _Region:
    """The graph of a branch or loop body, and its results in that graph.

    Results are made of their own as soon as the body is raised: one that comes from outside is
    captured by that, and all regions of an operation must know what any of them captures.
    """

    scope: Scope
    outputs: Sequence[Node]
    only_acts: bool = False

    @classmethod
    def of(cls, scope: Scope, outputs: Sequence[Node], only_acts: bool = False) -> _Region:
        return cls(scope, _distinct(scope, outputs), only_acts)

    def finish(self, raiser: Raiser, name: str, captured: Sequence[Node], single: bool) -> Node:
        """Add it to the surrounding graph with inputs for all of `captured`, in their order."""
        inside = [self.scope.use(outer) for outer in captured]
        own = [node for node in self.scope.graph.nodes if node.op == "placeholder"]
        self.scope.order([*(node for node in own if node not in inside), *inside])
        module = self.scope.finish(self.outputs[0] if single else tuple(self.outputs))
        return raiser.scope.attribute(raiser.unique(name), module)


def _distinct(scope: Scope, outputs: Sequence[Node]) -> list[Node]:
    """Return results that are no inputs and differ from each other, as torch asks for."""
    made: list[Node] = []
    for output in outputs:
        inside = scope.use(output)
        if inside.op == "placeholder" or inside in made:
            inside = typed(scope.call(aten.clone.default, (inside,), {}), dtype_of(inside))
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


def choose(
    raiser: Raiser,
    condition: Any,
    branches: Sequence[Callable[[], Sequence[Node]]],
    stored: Sequence[Global],
) -> list[Node]:
    """Add a branch to the graph; return its results.

    Args:
        raiser: The function under way.
        condition: A bool that is known when the graph runs.
        branches: What to raise where it is true, and where it is false; each returns its results.
        stored: The globals that either stores to.
    """
    regions = [_branch(raiser, branch, stored) for branch in branches]
    captured = _captured(*regions)
    modules = [region.finish(raiser, "branch", captured, False) for region in regions]
    inputs = tuple(_separate(raiser, captured))
    node = raiser.emit(torch.ops.higher_order.cond, condition, *modules, inputs)
    dtypes = [dtype_of(output) for output in regions[0].outputs]
    items = [] if regions[0].only_acts else _items(raiser, node, dtypes)
    count = len(items) - len(stored)
    raiser.state.update(zip((item.symbol for item in stored), items[count:], strict=True))
    raiser.emit_effect(operator.getitem, node, 0)
    return items[:count]


def _branch(
    raiser: Raiser, branch: Callable[[], Sequence[Node]], stored: Sequence[Global]
) -> _Region:
    with raiser.nested() as scope:
        outputs = [*branch(), *(raiser.current(item) for item in stored)]
        if outputs:
            return _Region.of(scope, outputs)
        # torch has no branches without results: one that only acts gives a number nobody uses.
        unused = raiser.as_tensor(0, torch.int64)
        return _Region.of(scope, [unused], only_acts=True)


def _items(raiser: Raiser, node: Node, dtypes: Sequence[Any]) -> list[Node]:
    return [
        raiser.emit(operator.getitem, node, number, dtype=dtype)
        for number, dtype in enumerate(dtypes)
    ]


@dataclass(frozen=True)
class Loop:
    """A loop over carried tensors.

    Attributes:
        initial: The first values.
        stored: The globals that it stores to.
        condition: Takes the carried values; returns a bool. What it stores is forgotten.
        body: Takes the carried values; returns the next ones.
    """

    initial: Sequence[Node]
    stored: Sequence[Global]
    condition: Callable[[Sequence[Node]], Any]
    body: Callable[[Sequence[Node]], Sequence[Any]]

    def emit(self, raiser: Raiser) -> list[Node]:
        """Add the loop to the graph; return the last carried values."""
        first = [*self.initial, *(raiser.current(item) for item in self.stored)]
        condition = self._region(raiser, first, self._holds)
        body = self._region(raiser, first, self._next)
        captured = _captured(condition, body)
        regions = [
            condition.finish(raiser, "loop_condition", captured, True),
            body.finish(raiser, "loop_body", captured, False),
        ]
        carried = tuple(_separate(raiser, first, beside=captured))
        target = torch.ops.higher_order.while_loop
        node = raiser.emit(target, *regions, carried, tuple(_separate(raiser, captured)))
        items = _items(raiser, node, [dtype_of(value) for value in first])
        count = len(self.initial)
        symbols = (item.symbol for item in self.stored)
        raiser.state.update(zip(symbols, items[count:], strict=True))
        return items[:count]

    def _region(
        self,
        raiser: Raiser,
        first: Sequence[Node],
        compute: Callable[[Raiser, Sequence[Node]], list[Node]],
    ) -> _Region:
        with raiser.nested() as scope:
            inputs = [
                scope.placeholder(f"carried_{number}", dtype_of(value))
                for number, value in enumerate(first)
            ]
            count = len(self.initial)
            symbols = (item.symbol for item in self.stored)
            raiser.state.update(zip(symbols, inputs[count:], strict=True))
            return _Region.of(scope, compute(raiser, inputs[:count]))

    def _holds(self, raiser: Raiser, carried: Sequence[Node]) -> list[Node]:
        return [raiser.as_tensor(self.condition(carried), torch.bool)]

    def _next(self, raiser: Raiser, carried: Sequence[Node]) -> list[Node]:
        outputs = []
        for value, before in zip(self.body(carried), carried, strict=True):
            dtype = dtype_of(before)
            assert dtype is not None, "loops carry tensors"
            outputs.append(raiser.as_tensor(value, dtype))
        return outputs + [raiser.current(item) for item in self.stored]
