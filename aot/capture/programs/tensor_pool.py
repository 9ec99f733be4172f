"""Pool of the tensors of several programs: aliases are stored once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import torch

from pelton.runtime.archive import open_archive

from ...compat.fake_tensors import FakeTensorMode
from ...ir.builder import place_of
from ...ir.elements import check_tensor, dtype_row
from ...spec.errors import ArtifactError
from ...spec.meta_tensors import has_data, stand_in
from ...spec.tensor_traits import DeviceTensorTrait, ExternalTensorTrait
from ..parameters.archives import ParameterArchiveBuilder


class TensorPool:
    """Collects tensors and gives each a name; the same memory is one tensor.

    Args:
        external: Which tensors are external, by their name in the programs.

    Attributes:
        shared: How many of those added were there already.

    Example:
        >>> pool, weight = TensorPool({}), torch.ones(2)
        >>> pool.add("f", "w", weight), pool.add("g", "w", weight), pool.add("g", "c", weight * 2)
        ('w', 'w', 'c')
        >>> pool.shared
        1
    """

    def __init__(self, external: Mapping[str, ExternalTensorTrait]) -> None:
        self.shared = 0
        self._external = external
        self._names: dict[Hashable, str] = {}
        self._tensors: dict[str, torch.Tensor] = {}
        self._records: dict[str, dict[str, Any]] = {}

    def add(self, program: str, key: str, tensor: torch.Tensor) -> str:
        """Return the name of a tensor, which is its key unless that is another's.

        Args:
            program: The name of the program that has the tensor.
            key: The tensor's name in the program.
            tensor: The tensor.

        Raises:
            ExportError: It is of a layout or element type that cannot be exported.
        """
        check_tensor(tensor, f"tensor {key}", "register")
        place = place_of(tensor) or id(tensor)
        name = self._names.get(place)
        if name is not None:
            self.shared += 1
            return name
        name = key if key not in self._tensors else f"{key}@{program}"
        self._names[place] = name
        self._tensors[name] = tensor
        self._records[name] = self._record(key, tensor)
        return name

    def _record(self, key: str, tensor: torch.Tensor) -> dict[str, Any]:
        trait = ExternalTensorTrait.get(tensor) or self._external.get(key)
        device = DeviceTensorTrait.get(tensor)
        queues = None if device is None or device.queues is None else list(device.queues)
        return {
            "dtype": dtype_row(tensor.dtype, f"tensor {key}").name,
            "shape": list(tensor.shape),
            "parameter": isinstance(tensor, torch.nn.Parameter),
            "requires_grad": tensor.requires_grad,
            "data": has_data(tensor),
            "external": trait and [trait.external_scope, trait.external_name],
            "device": device and [device.ordinal, queues],
        }

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the metadata of each tensor, by name."""
        return self._records

    def save(self, path: Path) -> None:
        """Write the data of those that have some to an archive.

        Raises:
            ArtifactError: The file cannot be written.
            ParameterError: The archive cannot hold an element type.
        """
        archive = ParameterArchiveBuilder()
        for name, tensor in self._tensors.items():
            if has_data(tensor):
                archive.add_tensor(name, tensor.detach())
        archive.save(path)


def read_tensors(path: Path, records: Mapping[str, Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """Return the tensors of an archive, mapped and not read.

    Args:
        path: The archive.
        records: What `TensorPool.records` returned.

    Raises:
        ArtifactError: One is missing, or is of another type or shape than its record says.
    """
    archive = open_archive(path, access="private")
    mode = FakeTensorMode()
    found = {}
    for name, record in records.items():
        dtype, shape = getattr(torch, record["dtype"]), tuple(record["shape"])
        if record["data"]:
            if name not in archive:
                raise ArtifactError(f"its archive {path.name} has no tensor {name!r}")
            stored = archive[name]
            if (stored.type_name, stored.shape) != (record["dtype"], shape):
                raise ArtifactError(
                    f"tensor {stored} of {path.name} should be {record['dtype']}{list(shape)}"
                )
            tensor = torch.from_numpy(stored.contents()).view(dtype).reshape(shape)
        else:
            tensor = stand_in(torch.empty(shape, dtype=dtype, device="meta"), mode)
        if record["parameter"]:
            tensor = torch.nn.Parameter(tensor, record["requires_grad"])
        if record["external"] is not None:
            ExternalTensorTrait(*record["external"]).set(tensor)
        if record["device"] is not None:
            DeviceTensorTrait(*record["device"]).set(tensor)
        found[name] = tensor
    return found
