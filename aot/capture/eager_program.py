"""Eager programs: the module or function behind an entry point, called as it was exported."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .arguments import Arguments


@dataclass
class EagerProgram:
    """A module or function with the structure and the constants of its arguments.

    A module is held by a weak reference.

    Args:
        target: The module or function.
        arguments: The flattened arguments that it was exported with.
        decompositions: The table that it was exported with.
    """

    target: Any
    arguments: Arguments
    decompositions: Mapping[Any, Callable[..., Any]] | None = None
    _target: Callable[[], Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given, self.target = self.target, None
        self._target = _reference(given)

    def find(self) -> Any:
        """Return the module or function; None where it is gone."""
        return self._target()

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Call it with values for its inputs, in their order."""
        target = self.find()
        args, kwargs = self.arguments.call_form(self.arguments.rebuild(leaves))
        return target(*args, **kwargs)


def _reference(target: Any) -> Callable[[], Any]:
    if isinstance(target, torch.nn.Module):
        return weakref.ref(target)
    if isinstance(getattr(target, "__self__", None), torch.nn.Module):
        return weakref.WeakMethod(target)
    return lambda: target
