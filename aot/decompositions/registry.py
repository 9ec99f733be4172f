"""Registry of decompositions: families of entries (operator, function, reason), and their chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from ..compat.operators import OperatorBase, OpOverload, OpOverloadPacket

Decomposition = Callable[..., Any]
"""A function of the operator's arguments; returns `NotImplemented` where it does not apply."""

DecompositionTable = dict[OperatorBase, Decomposition]
"""A table as `ExportedProgram.run_decompositions` takes it."""

_CONVERSIONS = (
    torch.ops.aten._to_copy.default,
    torch.ops.aten.to.dtype,
    torch.ops.aten.to.dtype_layout,
    torch.ops.prims.convert_element_type.default,
)
"""The operators that change an element type."""

_Function = TypeVar("_Function", bound=Decomposition)


@dataclass(frozen=True)
class Entry:
    """One line of a family.

    Args:
        operator: The operator that is decomposed.
        function: Its decomposition.
        reason: Why the compiler cannot lower the operator, or lowers it wrongly.
    """

    operator: OpOverload
    function: Decomposition
    reason: str


class Family:
    """The decompositions of one family of operators, each with its reason.

    Example:
        >>> import torch
        >>> family = Family("doubling")
        >>> @family.decomposes(torch.ops.aten.square.default, reason="to show how")
        ... def square(x):
        ...     return x * x
        >>> [entry.reason for entry in family.entries]
        ['to show how']
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: list[Entry] = []

    def enter(self, operator: OpOverload, function: Decomposition, *, reason: str) -> None:
        """Enter `function` as the decomposition of `operator`.

        Several functions of one operator are tried in order of entry; the first that does not
        return `NotImplemented` applies.

        Args:
            operator: The operator to decompose.
            function: Takes the operator's arguments.
            reason: Why the compiler cannot lower the operator, or lowers it wrongly.
        """
        self.entries.append(Entry(operator, function, reason))

    def decomposes(self, *operators: OpOverload, reason: str) -> Callable[[_Function], _Function]:
        """Return a decorator that enters a function as the decomposition of `operators`."""

        def enter(function: _Function) -> _Function:
            for operator in operators:
                self.enter(operator, function, reason=reason)
            return function

        return enter

    def converts(self, *, reason: str) -> Callable[[_Function], _Function]:
        """Return a decorator that enters a function for all conversions of element types.

        The function takes the tensor and the target type.
        """

        def enter(function: _Function) -> _Function:
            def decomposition(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
                wanted = kwargs.get("dtype", args[0] if args else None)
                return NotImplemented if wanted is None else function(x, wanted)

            for operator in _CONVERSIONS:
                self.enter(operator, decomposition, reason=reason)
            return function

        return enter


def present(*names: str) -> list[OpOverload]:
    """Return the ATen operators of these names that the installed version of torch has.

    Args:
        names: Names of operators that not every supported version of torch has.

    Example:
        >>> present("square", "no_such_operator")
        [<OpOverload(op='aten.square', overload='default')>]
    """
    packets = (getattr(torch.ops.aten, name, None) for name in names)
    return [packet.default for packet in packets if isinstance(packet, OpOverloadPacket)]


def chain(entries: Iterable[Entry]) -> DecompositionTable:
    """Return a table with one function for each operator, which tries its entries in order.

    Args:
        entries: Entries of one or more families, the more specific ones first.
    """
    functions: dict[OpOverload, list[Decomposition]] = {}
    for entry in entries:
        functions.setdefault(entry.operator, []).append(entry.function)
    return {operator: _first_of(candidates) for operator, candidates in functions.items()}


def _first_of(candidates: Sequence[Decomposition]) -> Decomposition:
    if len(candidates) == 1:
        return candidates[0]

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        for candidate in candidates:
            result = candidate(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return NotImplemented

    return decomposition
