"""Modules of torch: the tables that hold their tensors, hooks and submodules."""

from __future__ import annotations

from collections.abc import Callable, Collection, MutableMapping
from typing import Any

import torch

_TABLES = ("_parameters", "_buffers", "_modules")

TRAINING_LAYERS: tuple[type[torch.nn.Module], ...] = (
    torch.nn.modules.batchnorm._BatchNorm,
    torch.nn.modules.dropout._DropoutNd,
)
"""The base classes of the layers that act differently in training: norms of batches, dropout."""


def tensor_tables(
    module: torch.nn.Module,
) -> tuple[MutableMapping[str, object], MutableMapping[str, object]]:
    """Return the tables of a module's own parameters and buffers, which may be written to.

    Example:
        >>> parameters, buffers = tensor_tables(torch.nn.Linear(2, 3))
        >>> [*parameters], [*buffers]
        (['weight', 'bias'], [])
    """
    return module._parameters, module._buffers  # type: ignore[return-value]


def share_members(module: torch.nn.Module, source: torch.nn.Module) -> None:
    """Give a module the parameters, buffers and submodules of another, under their own names.

    Args:
        module: The module, which has none of its own.
        source: The module whose members it shares from now on.
    """
    for name in _TABLES:
        vars(module)[name] = vars(source)[name]


def load_state_dict_post_hooks(module: torch.nn.Module) -> Collection[Callable[..., Any]]:
    """Return what runs after a module's `load_state_dict`."""
    return module._load_state_dict_post_hooks.values()
