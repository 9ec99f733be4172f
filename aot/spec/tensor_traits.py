"""Traits of tensors that `export` reads: external name and device affinity.

A trait is an attribute of one tensor object, and lives as long as that object. Operations that put
other tensors in a module lose it: `copy.deepcopy`, `load_state_dict(assign=True)` and, for
buffers, `module.half()`. `externalize_module_parameters` therefore also records by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch

from pelton.runtime.errors import ExportError

_EXTERNAL = "_pelton_external_tensor_trait"
_DEVICE = "_pelton_device_tensor_trait"


@dataclass(frozen=True)
class ExternalTensorTrait:
    """The tensor is not stored in the program, but given by name when the program is loaded.

    Args:
        external_scope: The group of parameters; empty stands for `model`.
        external_name: The name within the scope.

    Example:
        >>> weight = torch.zeros(2)
        >>> ExternalTensorTrait("model", "weight").set(weight)
        >>> ExternalTensorTrait.get(weight)
        ExternalTensorTrait(external_scope='model', external_name='weight')
    """

    external_scope: str
    external_name: str

    def set(self, to_tensor: torch.Tensor) -> None:
        """Mark a tensor; an earlier mark is replaced."""
        setattr(to_tensor, _EXTERNAL, self)

    @staticmethod
    def get(from_tensor: torch.Tensor) -> ExternalTensorTrait | None:
        """Return the mark of a tensor, or None."""
        return cast("ExternalTensorTrait | None", getattr(from_tensor, _EXTERNAL, None))

    @staticmethod
    def clear(from_tensor: torch.Tensor) -> None:
        """Take the mark away from a tensor that may have one."""
        if hasattr(from_tensor, _EXTERNAL):
            delattr(from_tensor, _EXTERNAL)


@dataclass(frozen=True)
class DeviceAffinity:
    """A device of the program, and the queues of it that may be used.

    Args:
        ordinal: The number of the device, from 0.
        queues: The numbers of the queues; None for all.

    Raises:
        ExportError: A number is negative or not an int.

    Example:
        >>> DeviceAffinity(0) == DeviceAffinity(0, None), DeviceAffinity(1, [0])
        (True, DeviceAffinity(ordinal=1, queues=[0]))
    """

    ordinal: int
    queues: Sequence[int] | None = None

    def __post_init__(self) -> None:
        for number in (self.ordinal, *(self.queues or ())):
            if type(number) is not int or number < 0:
                raise ExportError(f"devices and queues are numbered from 0 by ints, not {number!r}")

    def __hash__(self) -> int:
        return hash((self.ordinal, None if self.queues is None else tuple(self.queues)))


@dataclass(frozen=True, eq=False)
class DeviceTensorTrait(DeviceAffinity):
    """The tensor is loaded to a certain device when the program runs.

    Args:
        ordinal: The number of the device, from 0.
        queues: The numbers of the queues; None for all.

    Raises:
        ExportError: A number is negative or not an int.

    Example:
        >>> weight = torch.zeros(2)
        >>> DeviceTensorTrait(1).set(weight)
        >>> DeviceTensorTrait.get(weight)
        DeviceTensorTrait(ordinal=1, queues=None)
    """

    def set(self, to_tensor: torch.Tensor) -> None:
        """Mark a tensor; an earlier mark is replaced."""
        setattr(to_tensor, _DEVICE, self)

    @staticmethod
    def get(from_tensor: torch.Tensor) -> DeviceTensorTrait | None:
        """Return the mark of a tensor, or None."""
        return cast("DeviceTensorTrait | None", getattr(from_tensor, _DEVICE, None))
