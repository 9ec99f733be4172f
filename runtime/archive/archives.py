"""Parameter archives: named weights in files and in memory, and their use in programs.

`open_archive` maps a file of any known format without reading its contents; every number in it is
checked before it is used, and no engine parses the file. `write_archive` streams parameters into a
file, atomically. `load_parameters` and `check_parameters` make one `ParameterSet` per scope of the
parameters that a user passes for a program.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..call.dtypes import DType
from ..errors import ArtifactError, ParameterError
from ..files import FileKind, StrPath, atomic_write, sniff
from . import gguf, irpa, safetensors
from .layout import Plan
from .parameter import Parameter, parameter_of, type_text
from .parameter_set import ParameterSet

Access = Literal["read", "private", "write"]
"""How a file is mapped: read-only, copy-on-write, or shared with writes to the file."""

ParameterSource: TypeAlias = "StrPath | Iterable[StrPath] | Mapping[str, Any]"
"""Where parameters come from: a file, several files, or tensors by name."""

_READERS: dict[FileKind, Callable[[NDArray[np.uint8]], list[Parameter]]] = {
    FileKind.IRPA: irpa.read,
    FileKind.SAFETENSORS: safetensors.read,
    FileKind.GGUF: gguf.read,
}

_PLANS: dict[str, Callable[[list[Parameter]], Plan]] = {
    ".irpa": irpa.plan,
    ".safetensors": safetensors.plan,
}

WRITABLE_SUFFIXES = tuple(_PLANS)
"""The suffixes of the formats that can be written."""


def open_archive(path: StrPath, *, access: Access = "read", mapped: bool = True) -> ParameterSet:
    """Return the parameters in a file, without reading their contents.

    Args:
        path: A `.irpa`, `.safetensors` or `.gguf` file, recognised by its first bytes, or the
            `.index.json` of a sharded safetensors archive.
        access: How the file is mapped.
        mapped: Map the file; otherwise it is read into memory, for files that change while they
            are used.

    Raises:
        ArtifactError: There is no such file, or it is not a valid archive.

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
        raise ArtifactError(f"{path} is not a valid {kind.value}: {error}") from error


def write_archive(
    path: StrPath,
    parameters: Iterable[Parameter],
    *,
    progress: Callable[[int], object] = lambda nbytes: None,
) -> None:
    """Write parameters to a file atomically.

    The contents are streamed in chunks.

    Args:
        path: The file; the suffix `.irpa` or `.safetensors` is the format.
        parameters: The parameters. Those that share memory are stored once.
        progress: Called with the number of bytes of each chunk that was written.

    Raises:
        ArtifactError: The suffix is unknown, or the file cannot be written.
        ParameterError: A name occurs twice, or the format cannot store an element type.

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
    plan = _PLANS[suffix](list(ParameterSet(parameters, f"the parameters for {path}").values()))
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
    """Return the parameters that a user passes for a program, by scope.

    Args:
        given: A file; several files; tensors by name (a `state_dict`, numpy arrays, a
            `ParameterSet`); or a mapping from scopes to any of these. Parameters without a scope
            are used for all `scopes`.
        scopes: The scopes of the program.

    Raises:
        ArtifactError: A file is not a valid archive.
        ParameterError: A tensor cannot be used, or a name occurs twice.

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
                f"parameters are given by scope ({sources}) and by name at once; pass "
                "{scope: file, files or tensors}, or {name: tensor}"
            )
    return dict.fromkeys(scopes, _parameter_set(given))


def check_parameters(
    needed: Mapping[str, Mapping[str, tuple[DType, tuple[int, ...]]]],
    given: Mapping[str, ParameterSet],
    *,
    allow_unused: bool = False,
) -> None:
    """Refuse parameters that do not fit a program, with all problems in one message.

    A parameter that no scope uses is refused, because a misspelt or outdated name would otherwise
    go unnoticed. Further names of a tensor that is used (tied weights) are accepted.

    Args:
        needed: Element type and shape of each parameter of the program, by scope and name.
        given: The result of `load_parameters`.
        allow_unused: Accept parameters that the program does not use, for programs that share
            one archive.

    Raises:
        ParameterError: Lists the parameters that are missing, unused, or of another type or shape.

    Example:
        >>> from pelton.runtime.call.dtypes import DTYPES
        >>> needed = {"model": {"bias": (DTYPES["float32"], (2,))}}
        >>> check_parameters(needed, load_parameters({"bias": np.zeros(2, np.float32)}))
    """
    found: dict[str, list[str]] = {
        "missing": [],
        "of another element type": [],
        "of another shape": [],
        _UNUSED: [],
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
            found[_UNUSED] += _unused(source, used.get(id(source), set()))
    if any(found.values()):
        lines = [
            f"  {what} ({len(items)}): {', '.join(items)}" for what, items in found.items() if items
        ]
        if len(lines) == 1 and found[_UNUSED]:
            lines.append(f"  {_UNUSED_HINT}")
        raise ParameterError("the parameters do not fit the program:\n" + "\n".join(lines))


_NOTHING = ParameterSet([])
_UNUSED = "not used by the program"
_UNUSED_HINT = "if that is meant, load with allow_unused_parameters=True"


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
    """Return a key that is equal for scopes with the same file or object."""
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
        shards = safetensors.read_index(path)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}") from error
    except ArtifactError as error:
        raise ArtifactError(f"{path} is not an index of a sharded archive: {error}") from error
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
        # Without a reservation, so that archives larger than memory can be opened.
        return mmap.mmap(handle, 0, flags=mmap.MAP_PRIVATE | mmap.MAP_NORESERVE)
    modes = {"read": mmap.ACCESS_READ, "private": mmap.ACCESS_COPY, "write": mmap.ACCESS_WRITE}
    return mmap.mmap(handle, 0, access=modes[access])
