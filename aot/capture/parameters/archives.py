"""Archives of weights: torch's view of `pelton.runtime.archive`, tensors in and tensors out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pelton.runtime.archive import WRITABLE_SUFFIXES, open_archive, write_archive
from pelton.runtime.archive.irpa import type_of
from pelton.runtime.archive.parameter import Parameter, blob_of, parameter_of, type_text
from pelton.runtime.archive.parameter_set import ParameterSet, add_to_index
from pelton.runtime.errors import ParameterError
from pelton.runtime.files import StrPath

from .externalize import externalize_module_parameters, named_tensors

__all__ = [
    "ParameterArchive",
    "ParameterArchiveBuilder",
    "ParameterArchiveEntry",
    "externalize_module_parameters",
    "save_module_parameters",
]


class ParameterArchiveEntry:
    """One entry of an archive, as torch tensors over the same memory.

    Args:
        raw: An `iree.runtime.ParameterIndexEntry`.
    """

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    @property
    def key(self) -> str:
        """The name of the parameter."""
        return str(self.raw.key)

    def as_flat_tensor(self) -> torch.Tensor:
        """Return the bytes of the contents as a `uint8` tensor, without a copy.

        Of a splat, the bytes of its pattern. Memory that must not be written to (of an index that
        IREE itself loaded) is copied, because torch has no read-only tensors.

        Raises:
            ValueError: IREE opened the entry's file without mapping it.
        """
        if self.raw.is_splat:
            return _bytes_tensor(memoryview(bytearray(self.raw.splat_pattern)))
        return _bytes_tensor(self.raw.file_view)

    def as_tensor(self) -> torch.Tensor:
        """Return the contents in the element type and shape that the entry's metadata states.

        A splat is one element expanded to the shape. Pairs of `float4_e2m1fn` come as torch's
        `float4_e2m1fn_x2`.

        Raises:
            ParameterError: The entry is a blob, or torch has no such element type.
        """
        type_name, shape = type_of(self.key, self.raw.metadata, self.raw.length)
        text = f"parameter {self.key!r} ({type_text(type_name, shape)})"
        if not type_name:
            raise ParameterError(f"{text} has no metadata that states its type and shape")
        if type_name == "float4_e2m1fn" and shape and shape[-1] % 2 == 0:
            type_name, shape = "float4_e2m1fn_x2", (*shape[:-1], shape[-1] // 2)
        dtype = getattr(torch, type_name, None)
        if not isinstance(dtype, torch.dtype) or type_name in ("int4", "uint4"):
            raise ParameterError(
                f"{text}: torch has no such tensors; as_flat_tensor() gives its bytes"
            )
        flat = self.as_flat_tensor()
        if self.raw.is_splat:
            if len(flat) > dtype.itemsize:
                return flat.repeat(self.raw.length // len(flat)).view(dtype).reshape(shape)
            return flat.repeat(dtype.itemsize // len(flat)).view(dtype).expand(shape)
        return flat.view(dtype).reshape(shape)

    def __repr__(self) -> str:
        return f"ParameterArchiveEntry({self.raw}, metadata={self.raw.metadata!r})"


class ParameterArchive:
    """Parameters of one or more files, by name.

    Files are mapped, so that opening costs no reading. Tensors may be written to: unless
    `writable`, the changes stay in memory and never reach the file.

    Args:
        file_path: A file to load at once; see `load`.
        mmap: Map the file instead of reading it into memory.
        readable: Programs that use `index` may read the contents.
        writable: Changes go to the file.

    Raises:
        ArtifactError: The file is no sound archive.
        ParameterError: The options contradict each other.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "head.irpa"
        >>> _ = save_module_parameters(path, nn.Linear(2, 3))
        >>> archive = ParameterArchive(path)
        >>> list(archive.keys()), archive["weight"].as_tensor().shape
        (['weight', 'bias'], torch.Size([3, 2]))
    """

    def __init__(
        self,
        file_path: StrPath | None = None,
        *,
        mmap: bool = True,
        readable: bool = True,
        writable: bool = False,
    ) -> None:
        self._index = ParameterSet([]).index()
        self._entries: dict[str, ParameterArchiveEntry] = {}
        if file_path is not None:
            self.load(file_path, mmap=mmap, readable=readable, writable=writable)

    def load(
        self,
        file_path: StrPath,
        *,
        mmap: bool = True,
        readable: bool = True,
        writable: bool = False,
    ) -> None:
        """Add the parameters of a file: `.irpa`, `.safetensors`, `.gguf`, or a sharded index.

        Args:
            file_path: The file.
            mmap: Map the file into memory instead of reading it.
            readable: Whether the tensors may be read.
            writable: Whether changes of the tensors go to the file.

        Raises:
            ArtifactError: The file is no sound archive.
            ParameterError: The archive has one of its names already, or the options contradict
                each other.
        """
        if writable and not mmap:
            raise ParameterError("writable=True needs mmap=True: changes go through the mapping")
        given = open_archive(file_path, access="write" if writable else "private", mapped=mmap)
        twice = [name for name in given if name in self._entries]
        if twice:
            names = ", ".join(map(repr, twice))
            raise ParameterError(f"{file_path} has names that the archive has already: {names}")
        for parameter in given.values():
            add_to_index(self._index, parameter, readable=readable, writable=True)
        self._entries = {key: ParameterArchiveEntry(raw) for key, raw in self._index.items()}

    @property
    def index(self) -> Any:
        """The parameters as an `iree.runtime.ParameterIndex`."""
        return self._index

    def keys(self) -> list[str]:
        """Return the names, in the order of the files."""
        return list(self._entries)

    def items(self) -> list[tuple[str, ParameterArchiveEntry]]:
        """Return the names and entries, in the order of the files."""
        return list(self._entries.items())

    def __getitem__(self, key: str) -> ParameterArchiveEntry:
        try:
            return self._entries[key]
        except KeyError:
            raise KeyError(f"no parameter {key!r}; there are {', '.join(self._entries)}") from None

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return repr(self._index)


class ParameterArchiveBuilder:
    """Collects tensors and writes them to an archive.

    Tensors are not copied: what is saved is what they hold when `save` is called.

    Example:
        >>> import tempfile
        >>> builder = ParameterArchiveBuilder()
        >>> builder.add_tensor("scale", torch.ones(2))
        >>> builder.save(Path(tempfile.mkdtemp()) / "scale").name
        'scale.irpa'
    """

    def __init__(self) -> None:
        self._parameters: dict[str, Parameter] = {}

    @property
    def index(self) -> Any:
        """What was added so far, as an `iree.runtime.ParameterIndex` over the same memory."""
        return ParameterSet(self._parameters.values()).index()

    def add_tensor(self, name: str, tensor: torch.Tensor) -> None:
        """Add a tensor of any device, strides and size.

        Raises:
            ParameterError: The name is taken, or the tensor is sparse, has no data (meta device),
                or is of an element type that archives cannot hold.
        """
        self._add(parameter_of(name, tensor))

    def add_module(self, module: nn.Module, *, prefix: str = "") -> None:
        """Add the parameters and persistent buffers of a module, under their `state_dict` keys.

        Args:
            module: The module. A tied tensor is stored once and found under each of its names.
            prefix: Put before each key, with a dot.

        Raises:
            ParameterError: As for `add_tensor`.
        """
        for name, tensor in named_tensors(module, prefix):
            self.add_tensor(name, tensor)

    def add_blob(self, key: str, blob: Any) -> None:
        """Add the bytes of a contiguous buffer, without an element type.

        Raises:
            ParameterError: The name is taken, or `blob` is no such buffer.
        """
        self._add(blob_of(key, blob))

    def save(self, file_path: StrPath) -> Path:
        """Write the archive; an older file is replaced only when the new one is whole.

        Args:
            file_path: Ends in `.irpa` or `.safetensors`; otherwise `.irpa` is appended.

        Returns:
            The path of the file.

        Raises:
            ArtifactError: The file cannot be written.
            ParameterError: The format cannot hold an element type.
        """
        path = Path(file_path)
        if path.suffix not in WRITABLE_SUFFIXES:
            path = path.with_name(f"{path.name}.irpa")
        write_archive(path, self._parameters.values())
        return path

    def _add(self, parameter: Parameter) -> None:
        if parameter.name in self._parameters:
            raise ParameterError(f"the archive has a parameter {parameter.name!r} already")
        self._parameters[parameter.name] = parameter


def save_module_parameters(file_path: StrPath, module: nn.Module, *, prefix: str = "") -> Path:
    """Write the parameters and persistent buffers of a module to an archive.

    Args:
        file_path: Ends in `.irpa` or `.safetensors`; otherwise `.irpa` is appended.
        module: The module.
        prefix: Put before each `state_dict` key, with a dot.

    Returns:
        The path of the file.

    Raises:
        ArtifactError: The file cannot be written.
        ParameterError: A tensor is sparse, has no data, or is of an unknown element type.

    Example:
        >>> import tempfile
        >>> save_module_parameters(Path(tempfile.mkdtemp()) / "head.safetensors", nn.ReLU()).name
        'head.safetensors'
    """
    builder = ParameterArchiveBuilder()
    builder.add_module(module, prefix=prefix)
    return builder.save(file_path)


def _bytes_tensor(view: memoryview) -> torch.Tensor:
    if not view.nbytes:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(bytearray(view) if view.readonly else view, dtype=torch.uint8)
