"""The first operator of a program whose value differs, and a reproducer that shows it alone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.fx import Node

from pelton.runtime.progress import stage

from ..compat.operators import OpOverload
from ..ir.exported import ExportedModule
from ..raising.fx import Raised
from ..raising.torch_program import to_torch
from ..spec.errors import PeltonError
from ..spec.locations import location_of_node
from .difference import Difference, difference
from .options import Numerics
from .reexported import Build, Decompositions, compiled_values, part_of, tensor_nodes
from .report import FirstDifference
from .reproducer import IsolatedBuild, OpCase, reproduce

AT_ONCE = 24
"""How many values a compiled part gives at once."""

Probe = Callable[[Sequence[int]], list[bool]]
"""Returns for each of several positions whether the value there differs."""


def first_differing(count: int, probe: Probe, at_once: int = AT_ONCE) -> int | None:
    """Return the first position whose value differs; None: none does.

    What comes after a wrong value is taken to be wrong as well.

    Args:
        count: How many positions there are.
        probe: Looks at several of them.
        at_once: How many it may look at at once.

    Example:
        >>> first_differing(1000, lambda positions: [p >= 437 for p in positions])
        437
    """
    low, high = 0, count - 1  # the first one is within
    found: int | None = None
    while low <= high:
        span = high - low + 1
        picked = sorted({low + (i + 1) * span // (at_once + 1) for i in range(at_once)} | {high})
        picked = [p for p in picked if low <= p <= high]
        differs = probe(picked)
        wrong = next((i for i, bad in enumerate(differs) if bad), None)
        if wrong is None:
            return found
        found = picked[wrong]
        if wrong == 0 and found == low:
            return found
        low, high = (picked[wrong - 1] + 1 if wrong else low), found - 1
    return found


class Bisection:
    """A search within one graph, for one call whose results differ.

    Args:
        program: The graph.
        inputs: Its inputs at that call.
        build: Compiles modules as the artifact was compiled.
        options: The tolerances, and where the reproducer goes.
        target: What the artifact is for, for the reproducer.
        decompositions: The table that the program was exported with.
    """

    def __init__(
        self,
        program: Raised,
        inputs: Sequence[Any],
        build: Build,
        options: Numerics,
        target: str,
        decompositions: Decompositions = None,
    ) -> None:
        self._program = program
        self._inputs = inputs
        self._build = build
        self._options = options
        self._target = target
        self._decompositions = decompositions
        self._values = tensor_nodes(program, inputs)

    def first_difference(self) -> FirstDifference | None:
        """Return the first operator whose value differs; None: none that can be looked at."""
        with stage("looking for the first operator that differs"):
            found = first_differing(len(self._values), self._probe)
            if found is None:  # values that are results are not fused with what follows
                found = first_differing(len(self._values), self._probe, at_once=1)
            if found is None:
                return None
            return self._described(*self._values[found])

    def _probe(self, positions: Sequence[int]) -> list[bool]:
        apart = self._apart([self._values[position] for position in positions])
        return [bool(found.problem) for found in apart]

    def _part(self, nodes: Sequence[Node]) -> ExportedModule:
        return part_of(self._program, nodes, self._decompositions)

    def _apart(self, pairs: Sequence[tuple[Node, torch.Tensor]]) -> list[Difference]:
        """Return how far values are off when compiled; none where they cannot be looked at."""
        try:
            with tempfile.TemporaryDirectory(prefix="pelton-bisect-") as folder:
                part = self._part([node for node, _ in pairs])
                got = compiled_values(part, self._inputs, self._build, Path(folder))
        except PeltonError:
            if len(pairs) == 1:
                return [Difference()]
            middle = len(pairs) // 2
            return [*self._apart(pairs[:middle]), *self._apart(pairs[middle:])]
        wanted = (value for _, value in pairs)
        return [
            difference(want, have, self._options) for want, have in zip(wanted, got, strict=True)
        ]

    def _described(self, node: Node, value: torch.Tensor) -> FirstDifference:
        (apart,) = self._apart([(node, value)])
        values = {known: tensor for known, tensor in self._values}
        case = OpCase.of(node, values, self._program, self._inputs)
        script = self._reproducer(case) if case else None
        return FirstDifference(
            operator_name(node), location_of_node(node), apart, self._stage(node, value), script
        )

    def _reproducer(self, case: OpCase) -> Path | None:
        asked = self._options.bisect
        folder = tempfile.mkdtemp(prefix="pelton-reproducer-") if asked is True else str(asked)
        how = IsolatedBuild(self._build, self._options, self._target, self._decompositions)
        return reproduce(case, how, Path(folder))

    def _stage(self, node: Node, value: torch.Tensor) -> str:
        """Return whether the module already says something else than the program."""
        try:
            (raised,) = to_torch(self._part([node])).functions.values()
            args, kwargs = raised.signature.call_form(self._inputs)
            (exported,) = raised(*args, **kwargs)
        except PeltonError:
            return "compile"
        return "export" if difference(value, exported, self._options).problem else "compile"


def operator_name(node: Node) -> str:
    """Return what users know an operator as."""
    target = node.target
    return (
        str(target) if isinstance(target, OpOverload) else str(getattr(target, "__name__", target))
    )
