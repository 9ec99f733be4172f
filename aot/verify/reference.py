"""What an artifact is compared with: the program in eager PyTorch, or its module raised there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from pelton.runtime.call import pytrees
from pelton.runtime.call.signature import ConstantSpec, Signature

from ..capture.eager_program import EagerProgram
from ..raising.torch_program import EntryPoint, ProgramState
from ..spec.errors import ExportError
from ..spec.meta_tensors import has_data


class Reference(Protocol):
    """Runs an entry point as PyTorch does."""

    @property
    def name(self) -> str:
        """What it is called in reports."""

    @property
    def state_names(self) -> Sequence[str]:
        """The state that it has."""

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Run it with input leaves; return the leaves of the result."""

    def get_state(self) -> dict[str, torch.Tensor]:
        """Return copies of its state."""

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Give it another state; names that it does not have are left out."""


class EagerReference:
    """The program itself.

    Args:
        call: Takes input leaves and returns the program's result.
        signature: The entry point's signature.
        owner: The module whose buffers are the state.
        name: What it is called in reports.
    """

    def __init__(
        self,
        call: Callable[[Sequence[Any]], Any],
        signature: Signature,
        owner: torch.nn.Module | None = None,
        name: str = "eager PyTorch",
    ) -> None:
        self.name = name
        self._call = call
        self._signature = signature
        self._buffers = dict(owner.named_buffers()) if owner is not None else {}

    @property
    def state_names(self) -> Sequence[str]:
        """The names of the module's buffers."""
        return tuple(self._buffers)

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Run the program on copies of the leaves."""
        copies = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        with torch.no_grad():
            result = self._call(copies)
        return result_leaves(self._signature, result)

    def get_state(self) -> dict[str, torch.Tensor]:
        """Return copies of the buffers."""
        return {name: buffer.detach().clone() for name, buffer in self._buffers.items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Write the buffers, in place."""
        with torch.no_grad():
            for name, buffer in self._buffers.items():
                if name in state:
                    buffer.copy_(torch.as_tensor(state[name]))


class RaisedReference:
    """The exported module, as PyTorch runs it.

    Args:
        entry: The entry point.
        state: The state that it shares with others.
    """

    name = "the exported module in PyTorch"

    def __init__(self, entry: EntryPoint, state: ProgramState) -> None:
        self._entry = entry
        self._state = state

    @property
    def state_names(self) -> Sequence[str]:
        """The names of the module's state."""
        return tuple(self._state)

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Run the entry point."""
        args, kwargs = self._entry.signature.call_form(leaves)
        return result_leaves(self._entry.signature, self._entry(*args, **kwargs))

    def get_state(self) -> dict[str, torch.Tensor]:
        """Return copies of the state."""
        return {name: self._state[name].clone() for name in self._state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Replace the state."""
        for name in self._state:
            if name in state:
                self._state[name] = torch.as_tensor(state[name])


def result_leaves(signature: Signature, result: Any) -> list[Any]:
    """Return the leaves of a result.

    Raises:
        SignatureError: It is not of the structure that the signature says.
    """
    leaves: list[Any] = [None] * len(signature.results)
    pytrees.flatten(signature.result_tree, result, leaves, "result")
    return [
        spec.value if isinstance(spec, ConstantSpec) else leaf
        for spec, leaf in zip(signature.results, leaves, strict=True)
    ]


def eager_reference(signature: Signature, program: Any) -> EagerReference:
    """Return the reference that a module, function or `ExportedProgram` of the user's is.

    Raises:
        ExportError: It cannot be called, or has no values.
    """
    if isinstance(program, EagerProgram):
        found = program.find()
        owner = found if isinstance(found, torch.nn.Module) else getattr(found, "__self__", None)
        return EagerReference(program, signature, _module(owner))
    if isinstance(program, torch.export.ExportedProgram):
        program = program.module()
    if not callable(program) or isinstance(program, type):
        raise ExportError(f"against: expected a module or function to call, got {program!r}")
    owner = _module(program) or _module(getattr(program, "__self__", None))
    if owner is not None and not is_runnable(owner):
        raise ExportError("against: the module has tensors without data, so it cannot run")

    def call(leaves: Sequence[Any]) -> Any:
        args, kwargs = signature.call_form(leaves)
        return program(*args, **kwargs)

    return EagerReference(call, signature, owner)


def is_runnable(module: torch.nn.Module) -> bool:
    """Return whether all tensors of a module have values."""
    return all(has_data(t) for t in (*module.parameters(), *module.buffers()))


def _module(value: Any) -> torch.nn.Module | None:
    return value if isinstance(value, torch.nn.Module) else None
