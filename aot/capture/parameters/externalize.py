"""Externalisation: which tensors of a module a program asks for by name when it is loaded.

Traits sit on tensor objects and are lost with them, so the names are kept in the module as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from ...compat.modules import load_state_dict_post_hooks
from ...spec.tensor_traits import ExternalTensorTrait


def named_tensors(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the parameters and persistent buffers of a module under their `state_dict` keys.

    A tied tensor comes under each of its names.

    Args:
        module: The module.
        prefix: Put before each key, with a dot.

    Example:
        >>> [name for name, _ in named_tensors(nn.Linear(2, 3), "head")]
        ['head.weight', 'head.bias']
    """
    for key, value in module.state_dict(keep_vars=True).items():
        if isinstance(value, torch.Tensor):
            yield (f"{prefix}.{key}" if prefix else key), value


@dataclass(frozen=True)
class _ExternalNames:
    """The external names of a module's tensors, kept in the module as a hook.

    As a hook it is copied with the module, and called after each `load_state_dict`, so that it
    outlives the tensors that carry the traits.
    """

    traits: dict[str, ExternalTensorTrait]

    def __call__(self, module: nn.Module, incompatible_keys: Any = None) -> None:
        """Set the traits; a tied tensor takes its first name."""
        marked: set[int] = set()
        for key, tensor in named_tensors(module):
            if key in self.traits and id(tensor) not in marked:
                marked.add(id(tensor))
                self.traits[key].set(tensor)


@dataclass(frozen=True)
class Externalization:
    """What `externalize_module_parameters` did to a module, to be undone by `remove`."""

    module: nn.Module
    names: tuple[str, ...]
    _handle: RemovableHandle
    _record: _ExternalNames

    def remove(self) -> None:
        """Make the tensors of the module part of the program again."""
        self._handle.remove()
        for _, tensor in named_tensors(self.module):
            if ExternalTensorTrait.get(tensor) in self._record.traits.values():
                ExternalTensorTrait.clear(tensor)


def externalize_module_parameters(
    module: nn.Module, *, external_scope: str = "", prefix: str = ""
) -> Externalization:
    """Make `export` leave the parameters and persistent buffers of a module out of the program.

    The program asks for them when it is loaded, by their `state_dict` keys; a tied tensor has one
    name there, the first. The names are recorded in the module too, by a hook, so that copies of
    the module (`copy.deepcopy`) and new tensors in it (`load_state_dict(assign=True)`, `half()`)
    stay external: `external_tensors` reads them.

    Args:
        module: The module, which is marked in place.
        external_scope: The scope of the parameters; empty stands for `model`.
        prefix: Put before each key, with a dot.

    Returns:
        The names given, and `remove()` to undo it.

    Example:
        >>> module = nn.Linear(2, 3)
        >>> externalize_module_parameters(module, prefix="head").names
        ('head.weight', 'head.bias')
        >>> ExternalTensorTrait.get(module.bias).external_name
        'head.bias'
    """
    traits = {
        key: ExternalTensorTrait(external_scope, f"{prefix}.{key}" if prefix else key)
        for key, _ in named_tensors(module)
    }
    record = _ExternalNames(traits)
    record(module)
    handle = module.register_load_state_dict_post_hook(record)  # type: ignore[no-untyped-call]
    names = tuple(trait.external_name for trait in traits.values())
    return Externalization(module, names, handle, record)


def external_tensors(module: nn.Module) -> dict[str, ExternalTensorTrait]:
    """Return which tensors of a module are external, by `state_dict` key.

    A trait on the tensor itself goes before what `externalize_module_parameters` recorded in the
    module or one of its submodules.

    Example:
        >>> import copy
        >>> module = nn.Linear(2, 3)
        >>> _ = externalize_module_parameters(module)
        >>> ExternalTensorTrait.get(copy.deepcopy(module).weight) is None  # torch drops it
        True
        >>> external_tensors(copy.deepcopy(module))["weight"].external_name
        'weight'
    """
    recorded: dict[str, ExternalTensorTrait] = {}
    for path, submodule in module.named_modules(remove_duplicate=False):
        for hook in load_state_dict_post_hooks(submodule):
            if isinstance(hook, _ExternalNames):
                recorded |= {
                    f"{path}.{key}" if path else key: trait for key, trait in hook.traits.items()
                }
    by_tensor: dict[int, ExternalTensorTrait] = {}
    external: dict[str, ExternalTensorTrait] = {}
    for key, tensor in named_tensors(module):
        trait = ExternalTensorTrait.get(tensor) or recorded.get(key)
        if trait is not None:
            external[key] = by_tensor.setdefault(id(tensor), trait)
    return external
