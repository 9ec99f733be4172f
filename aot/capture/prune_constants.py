"""Pruned signatures: without the parameters that were given as constants."""

from __future__ import annotations

import dataclasses
from typing import Any

from pelton.runtime.call import pytrees
from pelton.runtime.call.signature import ConstantSpec, Leaf, Parameter, Signature

from .arguments import Arguments


def prune_constants(signature: Signature, arguments: Arguments) -> Signature:
    """Return a signature without the parameters, and parts of parameters, that are constants.

    A parameter without any input is removed. Constants in `*args` and `**kwargs` are removed and
    the items behind them move up. In another container that holds inputs, numbers and text stay
    and are compared at the call, so that the same structure can be passed; any other constant, such
    as a tensor, becomes None (or is left out of a dict).

    Args:
        signature: The signature of the unpruned function.
        arguments: The arguments that it was traced with.
    """
    pruning = _Pruning(signature, arguments)
    kept = [pruning.parameter(parameter) for parameter in signature.parameters]
    parameters = tuple(parameter for parameter in kept if parameter is not None)
    return dataclasses.replace(signature, parameters=parameters, inputs=tuple(pruning.inputs))


class _Pruning:
    """Copies trees, leaving constants out; `inputs` are the leaves that are left."""

    def __init__(self, signature: Signature, arguments: Arguments) -> None:
        self._signature = signature
        self._values = arguments.leaves
        self.inputs: list[Leaf] = []

    def parameter(self, parameter: Parameter) -> Parameter | None:
        tree = parameter.tree
        if not self._has_input(tree):
            return None
        if parameter.kind.startswith("VAR_"):
            kind, items = tree
            if kind == "tuple":
                tree = [kind, [child for child in items if self._has_input(child)]]
            else:
                tree = [kind, [[k, child] for k, child in items if self._has_input(child)]]
        return dataclasses.replace(parameter, tree=self._copy(tree))

    def _has_input(self, tree: pytrees.Tree) -> bool:
        return any(
            not isinstance(self._signature.inputs[index], ConstantSpec)
            for index in pytrees.leaf_paths(tree, "")
        )

    def _copy(self, tree: pytrees.Tree) -> pytrees.Tree:
        if tree is None:
            return None
        if isinstance(tree, int):
            leaf = self._signature.inputs[tree]
            if isinstance(leaf, ConstantSpec) and not _can_be_passed(self._values[tree]):
                return None
            self.inputs.append(leaf)
            return len(self.inputs) - 1
        kind, *name, items = tree
        if kind in ("list", "tuple"):
            return [kind, *name, [self._copy(child) for child in items]]
        return [kind, *name, [[key, self._copy(child)] for key, child in items]]


def _can_be_passed(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str))
