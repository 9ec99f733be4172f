"""Tensors without data: models on the meta device or made under `FakeTensorMode`.

Their shape is all that an export needs, as long as their values come from an archive at load.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, MutableMapping

import torch

from ..compat.fake_tensors import FakeTensor, FakeTensorMode
from ..compat.modules import tensor_tables
from .errors import ExportError


def has_data(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has values: it is neither on the meta device nor fake.

    Example:
        >>> has_data(torch.empty(2)), has_data(torch.empty(2, device="meta"))
        (True, False)
    """
    return not tensor.is_meta and not isinstance(tensor, FakeTensor)


def is_same_tensor(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors share memory; without data, whether they are of one kind.

    Example:
        >>> weight = torch.ones(2)
        >>> is_same_tensor(weight, weight.detach()), is_same_tensor(weight, weight.clone())
        (True, False)
    """
    alike = (
        first.shape == second.shape
        and first.stride() == second.stride()
        and first.dtype == second.dtype
        and has_data(first) == has_data(second)
    )
    if not alike or not has_data(first):
        return alike
    return first.device == second.device and first.data_ptr() == second.data_ptr()


@contextlib.contextmanager
def traced_on_cpu(module: torch.nn.Module) -> Iterator[None]:
    """Have fake tensors on the CPU in place of a module's tensors on the meta device.

    torch refuses to mix the meta device with others, so that only a program whose inputs and
    constants are all on it could be traced. The module has its own tensors again afterwards.

    Example:
        >>> layer = torch.nn.Linear(2, 3, device="meta")
        >>> with traced_on_cpu(layer):
        ...     print(layer.weight.device, layer.weight.shape)
        cpu torch.Size([3, 2])
        >>> layer.weight.device
        device(type='meta')
    """
    mode = FakeTensorMode()
    stand_ins: dict[int, torch.Tensor] = {}
    replaced: list[tuple[MutableMapping[str, object], str, torch.Tensor]] = []
    try:
        for owner in _places(module):
            for name, value in list(owner.items()):
                if isinstance(value, torch.Tensor) and value.is_meta:
                    if id(value) not in stand_ins:
                        stand_ins[id(value)] = stand_in(value, mode)
                    replaced.append((owner, name, value))
                    owner[name] = stand_ins[id(value)]
        yield
    finally:
        for owner, name, value in replaced:
            owner[name] = value


def refuse_without_data(tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Refuse tensors that would be part of a program but have no values.

    Args:
        tensors: The tensors with their names.

    Raises:
        ExportError: There are such tensors; names all of them.
    """
    without = [name for name, tensor in tensors if not has_data(tensor)]
    if without:
        raise ExportError(
            f"these tensors have no data (they are on the meta device or fake): "
            f"{', '.join(without)}; parameters and persistent buffers can be taken from an archive "
            "at load (external_parameters=True); make the others with device='cpu'"
        )


def _places(module: torch.nn.Module) -> Iterator[MutableMapping[str, object]]:
    """Yield the dictionaries that hold a module's tensors: registered ones and attributes."""
    for submodule in module.modules():
        yield from tensor_tables(submodule)
        yield vars(submodule)


def stand_in(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    """Return a fake tensor on the CPU that looks like a tensor without data."""
    with mode:
        fake = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(fake, tensor.requires_grad)
        return fake
