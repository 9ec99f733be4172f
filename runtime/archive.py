"""Parameter archives: weights in files and in memory, by name, and their way into a program.

`open_archive` maps a file of any known format without reading its contents; every number in it is
checked here before anything relies on it, and no engine ever parses the file. `write_archive`
streams parameters into a file that appears only when it is whole. `load_parameters` and
`check_parameters` turn what a user gives for a program into one `ParameterSet` for each scope.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import archive_gguf, archive_irpa, archive_safetensors
from .archive_layout import Plan
from .dtypes import DType
from .errors import ArtifactError, ParameterError
from .files import FileKind, StrPath, atomic_write, sniff
from .parameter import Parameter, parameter_of, type_text

Access = Literal["read", "private", "write"]
"""How a file is mapped: read-only; writable in memory only; or writable through to the file."""

ParameterSource: TypeAlias = "StrPath | Iterable[StrPath] | Mapping[str, Any]"
"""Where parameters come from: a file, several files, or tensors by name."""

_READERS: dict[FileKind, Callable[[NDArray[np.uint8]], list[Parameter]]] = {
    FileKind.IRPA: archive_irpa.read,
    FileKind.SAFETENSORS: archive_safetensors.read,
    FileKind.GGUF: archive_gguf.read,
}

_PLANS: dict[str, Callable[[list[Parameter]], Plan]] = {
    ".irpa": archive_irpa.plan,
    ".safetensors": archive_safetensors.plan,
}

WRITABLE_SUFFIXES = tuple(_PLANS)
"""The suffixes of the formats that can be written."""


class ParameterSet(Mapping[str, Parameter]):
    """Parameters by name, from one or more files or from memory.

    Args:
        parameters: The parameters, each name once.
        origin: Where they come from, as messages say it.

    Raises:
        ParameterError: A name comes twice.

    Example:
        >>> given = ParameterSet([parameter_of("bias", np.zeros(2, np.float32))])
        >>> str(given["bias"]), len(given), given.nbytes
        ('bias (float32 2)', 1, 8)
    """

    def __init__(self, parameters: Iterable[Parameter], origin: str = "memory") -> None:
        self.origin = origin
        self._parameters: dict[str, Parameter] = {}
        twice = []
        for parameter in parameters:
            if parameter.name in self._parameters:
                twice.append(parameter.name)
            self._parameters[parameter.name] = parameter
        if twice:
            names = ", ".join(map(repr, twice))
            raise ParameterError(f"these parameters come more than once in {origin}: {names}")

    def __getitem__(self, name: str) -> Parameter:
        try:
            return self._parameters[name]
        except KeyError:
            raise KeyError(f"no parameter {name!r} in {self.origin}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __repr__(self) -> str:
        return f"ParameterSet({len(self)} parameters, {self.nbytes} bytes, from {self.origin})"

    @property
    def nbytes(self) -> int:
        """The bytes of all contents; tied tensors count once, splats not at all."""
        sizes = {p.identity() or p.name: p.nbytes for p in self.values() if not p.splat}
        return sum(sizes.values())

    def index(self, names: Iterable[str] | None = None, *, writable: bool = False) -> Any:
        """Return an `iree.runtime.ParameterIndex` over the same memory.

        Contents are copied only where they are strided or on another device. The index, and what
        is made of it, keep the memory alive.

        Args:
            names: The parameters to put in; all by default.
            writable: Programs may write to them.
        """
        import iree.runtime

        index = iree.runtime.ParameterIndex()
        for name in self if names is None else names:
            add_to_index(index, self[name], writable=writable)
        return index

    def provider(self, scope: str, names: Iterable[str] | None = None) -> Any:
        """Return an `iree.runtime.ParameterProvider` of these parameters.

        IREE's CPU devices use contents that start at a multiple of 64 bytes in place; those of
        archives that Pelton wrote and those of torch tensors do.

        Args:
            scope: The scope by which the program asks for them.
            names: The parameters that the program needs; all by default.
        """
        return self.index(names).create_provider(scope)


def add_to_index(
    index: Any, parameter: Parameter, *, readable: bool = True, writable: bool = False
) -> None:
    """Add one parameter to an `iree.runtime.ParameterIndex`, over the same memory."""
    about = archive_irpa.metadata(parameter)
    if parameter.splat:
        index.add_splat(parameter.name, parameter.data, parameter.nbytes, about)
    else:
        index.add_buffer(parameter.name, parameter.contents(), readable, writable, about)


def open_archive(path: StrPath, *, access: Access = "read", mapped: bool = True) -> ParameterSet:
    """Return the parameters in a file, without reading their contents.

    Args:
        path: A `.irpa`, `.safetensors` or `.gguf` file, told by its first bytes, or the
            `.index.json` of a sharded safetensors archive.
        access: How the file is mapped.
        mapped: Map the file; otherwise it is read into memory at once, for files that change
            while they are used.

    Raises:
        ArtifactError: There is no such file, or it is no sound archive.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "weights.irpa"
        >>> write_archive(path, [parameter_of("bias", np.float32([1, 2]))])
        >>> open_archive(path)["bias"].array()
        array([1., 2.], dtype=float32)
    """
    path = Path(path)
    if path.suffix == ".json":
        return ParameterSet(_sharded(path, access, mapped), str(path))
    kind = sniff(path)
    if kind not in _READERS:
        known = ", ".join(kind.value for kind in _READERS)
        raise ArtifactError(f"{path} holds no parameters: it is {kind.value}; known are {known}")
    try:
        return ParameterSet(_READERS[kind](_memory(path, access, mapped)), str(path))
    except ArtifactError as error:
        raise ArtifactError(f"{path} is no sound {kind.value}: {error}") from error


def write_archive(
    path: StrPath,
    parameters: Iterable[Parameter],
    *,
    progress: Callable[[int], object] = lambda nbytes: None,
) -> None:
    """Write parameters to a file, which replaces an older one only when it is whole.

    The contents are streamed: beyond what the caller holds, no more than a chunk is in memory.

    Args:
        path: The file; `.irpa` or `.safetensors` decides the format.
        parameters: What to write. Parameters that are the same memory are stored once.
        progress: Called with the number of bytes after each piece that was written.

    Raises:
        ArtifactError: The suffix is unknown, or the file cannot be written.
        ParameterError: A name comes twice, or the format cannot hold an element type.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "weights.safetensors"
        >>> write_archive(path, [parameter_of("bias", np.zeros(2, np.int8))])
        >>> list(open_archive(path))
        ['bias']
    """
    suffix = Path(path).suffix
    if suffix not in _PLANS:
        known = ", ".join(_PLANS)
        raise ArtifactError(f"cannot write {path}: the name must end in one of {known}")
    plan = _PLANS[suffix](list(ParameterSet(parameters, f"what goes to {path}").values()))
    try:
        with atomic_write(path) as file:
            end = file.write(plan.head)
            for start, parameter in plan.contents:
                end += file.write(bytes(start - end))
                for chunk in parameter.chunks():
                    end += file.write(chunk.data)
                    progress(chunk.nbytes)
            file.write(bytes(plan.nbytes - end))
    except OSError as error:
        raise ArtifactError(
            f"cannot write {path}: {error.strerror}; it takes {plan.nbytes} bytes"
        ) from error


def load_parameters(
    given: ParameterSource | Mapping[str, ParameterSource] | None,
    scopes: Iterable[str] = ("model",),
) -> dict[str, ParameterSet]:
    """Return the parameters that a user gives for a program, for each scope.

    Args:
        given: A file; several files; tensors by name (a `state_dict`, numpy arrays, a
            `ParameterSet`); or a mapping from scopes to any of these. What comes without a scope
            is offered to all `scopes`.
        scopes: The scopes that the program asks for.

    Raises:
        ArtifactError: A file is no sound archive.
        ParameterError: A tensor cannot be used, or a name comes twice.

    Example:
        >>> sets = load_parameters({"model": {"bias": np.zeros(2, np.float32)}})
        >>> str(sets["model"]["bias"])
        'bias (float32 2)'
        >>> load_parameters({"bias": np.zeros(2)})["model"]["bias"].shape
        (2,)
    """
    if given is None:
        return {}
    if isinstance(given, Mapping) and not isinstance(given, ParameterSet):
        scoped = {name: _is_source(value) for name, value in given.items()}
        if all(scoped.values()):
            opened: dict[Any, ParameterSet] = {}
            for source in given.values():
                if _key_of(source) not in opened:
                    opened[_key_of(source)] = _parameter_set(source)
            return {scope: opened[_key_of(source)] for scope, source in given.items()}
        if any(scoped.values()):
            sources = ", ".join(repr(name) for name, is_source in scoped.items() if is_source)
            raise ParameterError(
                f"parameters are given by scope ({sources}) and by name at once; give "
                "{scope: file, files or tensors}, or {name: tensor}"
            )
    return dict.fromkeys(scopes, _parameter_set(given))


def check_parameters(
    needed: Mapping[str, Mapping[str, tuple[DType, tuple[int, ...]]]],
    given: Mapping[str, ParameterSet],
    *,
    allow_unused: bool = False,
) -> None:
    """Refuse parameters that do not fit a program, with all that is wrong at once.

    A parameter that no scope uses is refused, because a misspelt or outdated name would otherwise
    go unnoticed. Excused are further names of a tensor that is used (tied weights).

    Args:
        needed: Element type and shape of each parameter of the program, by scope and name.
        given: What `load_parameters` returned.
        allow_unused: Accept parameters that the program does not use, for programs that share
            one archive and use a part each.

    Raises:
        ParameterError: Lists the parameters that are missing, unused, or of another type or shape.

    Example:
        >>> from .dtypes import DTYPES
        >>> needed = {"model": {"bias": (DTYPES["float32"], (2,))}}
        >>> check_parameters(needed, load_parameters({"bias": np.zeros(2, np.float32)}))
    """
    found: dict[str, list[str]] = {
        "missing": [],
        "of another element type": [],
        "of another shape": [],
        "not used by the program": [],
    }
    used: dict[int, set[str]] = {}
    for scope, names in needed.items():
        source = given.get(scope, _NOTHING)
        used.setdefault(id(source), set()).update(names)
        for name, (dtype, shape) in names.items():
            wanted = type_text(dtype.name, shape)
            label = f"{scope}::{name}" if scope else name
            parameter = source.get(name)
            if parameter is None:
                found["missing"].append(f"{label} ({wanted})")
            elif parameter.type_name != dtype.name:
                text = type_text(parameter.type_name, parameter.shape)
                found["of another element type"].append(f"{label}: {wanted}, given {text}")
            elif parameter.shape != tuple(shape):
                text = type_text(parameter.type_name, parameter.shape)
                found["of another shape"].append(f"{label}: {wanted}, given {text}")
    if not allow_unused:
        for source in {id(source): source for source in given.values()}.values():
            found["not used by the program"] += _unused(source, used.get(id(source), set()))
    if any(found.values()):
        lines = [
            f"  {what} ({len(items)}): {', '.join(items)}" for what, items in found.items() if items
        ]
        raise ParameterError("the parameters do not fit the program:\n" + "\n".join(lines))


_NOTHING = ParameterSet([])


def _unused(source: ParameterSet, used: set[str]) -> list[str]:
    tied = {source[name].identity() for name in used if name in source} - {None}
    return [
        f"{parameter} from {source.origin}"
        for name, parameter in source.items()
        if name not in used and parameter.identity() not in tied
    ]


def _is_source(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike, list, tuple, Mapping))


def _key_of(source: Any) -> Any:
    """Return what is equal for two scopes that are given the same file or object."""
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else id(source)


def _parameter_set(source: ParameterSource) -> ParameterSet:
    if isinstance(source, ParameterSet):
        return source
    if isinstance(source, (str, os.PathLike)):
        return open_archive(source)
    if isinstance(source, Mapping):
        return ParameterSet(parameter_of(name, value) for name, value in source.items())
    if isinstance(source, (list, tuple)):
        sets = [_parameter_set(each) for each in source]
        origin = ", ".join(each.origin for each in sets)
        return ParameterSet((p for each in sets for p in each.values()), origin)
    raise ParameterError(
        "parameters are a file, a list of files, or a mapping of tensors, "
        f"not {type(source).__qualname__}"
    )


def _sharded(path: Path, access: Access, mapped: bool) -> Iterator[Parameter]:
    try:
        shards = archive_safetensors.read_index(path)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}") from error
    except ArtifactError as error:
        raise ArtifactError(f"{path} is no index of a sharded archive: {error}") from error
    for file, names in shards.items():
        shard = open_archive(path.with_name(file), access=access, mapped=mapped)
        missing = [name for name in names if name not in shard]
        if missing:
            raise ArtifactError(f"{path} lists {', '.join(missing)} in {file}, which lacks them")
        yield from (shard[name] for name in names)


def _memory(path: Path, access: Access, mapped: bool) -> NDArray[np.uint8]:
    if not mapped:
        return np.fromfile(path, np.uint8)
    try:
        with open(path, "r+b" if access == "write" else "rb") as file:
            return np.frombuffer(_map(file.fileno(), access), np.uint8)
    except OSError as error:
        raise ArtifactError(f"cannot map {path}: {error.strerror}") from error


def _map(handle: int, access: Access) -> mmap.mmap:
    if access == "private" and hasattr(mmap, "MAP_NORESERVE"):
        # Without a reservation, so that archives larger than the memory can be opened.
        return mmap.mmap(handle, 0, flags=mmap.MAP_PRIVATE | mmap.MAP_NORESERVE)
    modes = {"read": mmap.ACCESS_READ, "private": mmap.ACCESS_COPY, "write": mmap.ACCESS_WRITE}
    return mmap.mmap(handle, 0, access=modes[access])
