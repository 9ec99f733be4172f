"""Random numbers of a graph: drawn by torch before each call, as inputs of the compiled program.

So they come from torch's generators, in the order of the program: `torch.manual_seed` holds, and
dropout masks are those of eager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import Tensor
from torch.fx import GraphModule, Node, map_arg

from ..compat import pytrees
from ..compat.operators import OpOverload, schema_of
from ..spec.errors import UnsupportedOpError
from ..spec.locations import location_of_node
from ..spec.sizes import is_static
from .graph import copy_of, layout_of

aten = torch.ops.aten


def dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return what `aten.native_dropout` does, with the drawing of its mask apart.

    Args:
        x: The tensor.
        p: The probability that an element is zeroed.
        train: Whether to drop anything; False: x is returned as it is.
    """
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    mask = aten.bernoulli.p(torch.empty_like(x, dtype=torch.bool), 1 - p)
    return x * mask * (0.0 if p == 1 else 1 / (1 - p)), mask


_BY_SHAPE = (
    aten.bernoulli.p,
    aten.rand_like.default,
    aten.randn_like.default,
    aten.randint_like.default,
    aten.randint_like.low_dtype,
    aten.cauchy.default,
    aten.exponential.default,
    aten.geometric.default,
    aten.log_normal.default,
    aten.normal_functional.default,
    aten.random.default,
    getattr(aten.random, "from"),
    aten.random.to,
    aten.uniform.default,
)
"""Operators that look only at the shape and type of their first argument."""

_DRAWN_BY: dict[OpOverload, Callable[..., Tensor]] = {aten.bernoulli.p: Tensor.bernoulli_}
"""What draws in the order of memory, as eager does, where the functional operator does not."""


@dataclass(frozen=True)
class _Size:
    """A size that is known at the call: an expression of symbols."""

    expression: Any


@dataclass(frozen=True)
class _Input:
    """An input of the call."""

    position: int


@dataclass(frozen=True)
class _Like:
    """A tensor of which only shape, layout and type matter.

    Attributes:
        sizes: Numbers and `_Size`s.
        layout: The dimensions in the order of memory.
        dtype: The element type.
        device: Where it is.
    """

    sizes: tuple[int | _Size, ...]
    layout: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


_Place = tuple[int, int | None]
"""Where the value of a symbol is: an input, and the dimension of it if it is a tensor."""


@dataclass(frozen=True)
class Draws:
    """The random numbers that a graph needs.

    Attributes:
        calls: Function, arguments and keyword arguments of each, with stand-ins in them.
        places: Where the values of symbols are.
    """

    calls: tuple[tuple[Callable[..., Tensor], Any, Any], ...]
    places: Mapping[Any, _Place]

    def __call__(self, inputs: Sequence[Any]) -> list[Tensor]:
        """Draw them for one call."""
        return [
            draw(*self._filled(args, inputs), **self._filled(kwargs, inputs))
            for draw, args, kwargs in self.calls
        ]

    def _filled(self, arguments: Any, inputs: Sequence[Any]) -> Any:
        return pytrees.tree_map(lambda leaf: self._value(leaf, inputs), arguments)

    def _value(self, leaf: Any, inputs: Sequence[Any]) -> Any:
        if isinstance(leaf, _Input):
            return inputs[leaf.position]
        if isinstance(leaf, _Size):
            return self._size(leaf, inputs)
        if isinstance(leaf, _Like):
            sizes = [s if is_static(s) else self._size(s, inputs) for s in leaf.sizes]
            return torch.empty_permuted(sizes, leaf.layout, dtype=leaf.dtype, device=leaf.device)
        return leaf

    def _size(self, size: _Size, inputs: Sequence[Any]) -> int:
        values = {}
        for symbol in size.expression.free_symbols:
            position, axis = self.places[symbol]
            values[symbol] = inputs[position] if axis is None else inputs[position].shape[axis]
        return int(size.expression.xreplace({s: sympy.Integer(v) for s, v in values.items()}))


def draw_outside(module: GraphModule) -> tuple[GraphModule, Draws | None]:
    """Return a graph that takes its random numbers as inputs, the last ones, and what draws them.

    Args:
        module: A graph of AOTAutograd; it stays as it is.

    Raises:
        UnsupportedOpError: A random operator needs values that only the program computes.
    """
    if not any(_is_random(node) for node in module.graph.nodes):
        return module, None
    copied = copy_of(module)
    placeholders = [node for node in copied.graph.nodes if node.op == "placeholder"]
    places = _places(placeholders)
    calls = []
    last = placeholders[-1] if placeholders else None
    for node in [node for node in copied.graph.nodes if _is_random(node)]:
        calls.append(_call(node, placeholders, places))
        first = next(iter(copied.graph.nodes))
        graph = copied.graph
        with graph.inserting_after(last) if last else graph.inserting_before(first):
            last = graph.placeholder(f"drawn_{len(calls)}")
        last.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(last)
        graph.erase_node(node)
    return copied, Draws(tuple(calls), places)


def _is_random(node: Node) -> bool:
    if not isinstance(node.target, OpOverload):
        return False
    if torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    names = [argument.name for argument in schema_of(node.target).arguments]
    if "dropout_p" not in names:
        return True
    position = names.index("dropout_p")
    by_name: Any = node.kwargs.get("dropout_p", 0.0)
    given: Any = node.args[position] if position < len(node.args) else by_name
    return bool(given != 0)


def _places(placeholders: Sequence[Node]) -> dict[Any, _Place]:
    """Return where the value of each symbol of the inputs' sizes is."""
    found: dict[Any, _Place] = {}
    for position, node in enumerate(placeholders):
        value = node.meta.get("val")
        sizes = enumerate(value.shape) if isinstance(value, Tensor) else [(None, value)]
        for axis, size in sizes:
            if isinstance(size, torch.SymInt) and isinstance(size.node.expr, sympy.Symbol):
                found.setdefault(size.node.expr, (position, axis))
    return found


def _call(
    node: Node,
    placeholders: Sequence[Node],
    places: Mapping[Any, _Place],
) -> tuple[Callable[..., Tensor], Any, Any]:
    """Return what draws a node's numbers, with stand-ins for what is known at the call."""

    def size(value: Any) -> int | _Size:
        if not isinstance(value, torch.SymInt):
            return int(value)
        if not value.node.expr.free_symbols <= places.keys():
            raise _refusal(node)
        return _Size(value.node.expr)

    def stand_in(argument: Node) -> Any:
        value = argument.meta.get("val")
        if isinstance(value, (int, torch.SymInt)):
            return size(value)
        if isinstance(value, Tensor) and node.target in _BY_SHAPE and argument is node.args[0]:
            layout = layout_of(value) or tuple(range(value.dim()))
            return _Like(tuple(map(size, value.shape)), layout, value.dtype, value.device)
        if argument in placeholders:
            return _Input(placeholders.index(argument))
        raise _refusal(node)

    assert isinstance(node.target, OpOverload)
    if not isinstance(node.meta["val"], Tensor):
        raise _refusal(node, "among other results")
    args, kwargs = map_arg((node.args, node.kwargs), stand_in)
    return _DRAWN_BY.get(node.target, node.target), args, kwargs


def _refusal(node: Node, why: str = "that depend on computed values") -> UnsupportedOpError:
    return UnsupportedOpError(
        f"{node.target} draws random numbers {why}",
        operators=(str(node.target),),
        location=location_of_node(node),
    )
