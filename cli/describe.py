"""Descriptions of our files, read without running them and on any machine."""

from __future__ import annotations

import importlib.metadata
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import iree.runtime

from pelton.runtime.archive import open_archive
from pelton.runtime.artifacts.entry_points import LIBRARIES, EntryPoint
from pelton.runtime.artifacts.manifest import Manifest
from pelton.runtime.artifacts.trtm import open_trtm
from pelton.runtime.artifacts.vmfb import ParameterTable, describe_target, read_info
from pelton.runtime.call.signature import (
    SIGNATURE_KEY,
    STATE_GET,
    STATE_SET,
    ConstantSpec,
    Leaf,
    ScalarSpec,
    Signature,
    TensorSpec,
)
from pelton.runtime.call.sizes import render
from pelton.runtime.engines.trtm_module import scalar_kind
from pelton.runtime.errors import ArtifactError
from pelton.runtime.files import FileKind, StrPath, sniff


@dataclass(frozen=True)
class ParameterLine:
    """A parameter: its name, element type, shape and size."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


@dataclass
class Description:
    """What a file says of itself.

    Attributes:
        path: The file.
        kind: What it is, in words.
        nbytes: Its size.
        signatures: The entry points.
        unsigned: Names of functions of other tools, which state no signature.
        state: Type and sizes of what is kept between calls, by name.
        parameters: What it holds, or takes from archives, by scope (empty: no scope).
        target: What it was compiled for: `backend`, and what the target adds.
        options: How it was compiled.
        versions: Of the packages that made it.
        engines: What a TensorRT package says of each entry point: `profiles`, `members` with
            their sizes, `report`, `notes`.
    """

    path: Path
    kind: str
    nbytes: int
    signatures: list[Signature] = field(default_factory=list)
    unsigned: list[str] = field(default_factory=list)
    state: dict[str, Leaf] = field(default_factory=dict)
    parameters: dict[str, list[ParameterLine]] = field(default_factory=dict)
    target: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    engines: dict[str, dict[str, Any]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the description in types that JSON has."""
        return {
            "file": str(self.path),
            "kind": self.kind,
            "nbytes": self.nbytes,
            "target": self.target,
            "options": self.options,
            "versions": self.versions,
            "functions": [_signature_dict(signature) for signature in self.signatures],
            "other_functions": self.unsigned,
            "state": {name: _leaf_dict(leaf) for name, leaf in self.state.items()},
            "parameters": {
                scope: [vars(line) | {"shape": list(line.shape)} for line in lines]
                for scope, lines in self.parameters.items()
            },
            "engines": self.engines,
        }


def describe(path: StrPath) -> Description:
    """Return what a file holds.

    Raises:
        ArtifactError: There is no such file, it is damaged, or of a kind that is not ours.
    """
    kind = sniff(path)
    if kind not in _READERS:
        known = ", ".join(known.value for known in _READERS)
        raise ArtifactError(f"{path} cannot be inspected: it is {kind.value}; known: {known}")
    description = Description(Path(path), kind.value, os.path.getsize(path))
    _READERS[kind](description)
    return description


def _read_mlir(description: Description) -> None:
    from pelton.aot.ir.module import parameters_of, read_module, signatures_of

    module_op = read_module(description.path)
    _add_signatures(description, signatures_of(module_op))
    _add_parameters(description, parameters_of(module_op))


def _read_vmfb(description: Description) -> None:
    info = read_info(description.path)
    description.target = dict(info.target)
    description.options = dict(info.options)
    description.versions = dict(info.versions)
    try:
        module = iree.runtime.VmModule.mmap(iree.runtime.VmInstance(), str(description.path))
    except (ValueError, RuntimeError) as error:
        version = importlib.metadata.version("iree-base-runtime")
        raise ArtifactError(
            f"{description.path} is not a module that IREE {version} can read"
        ) from error
    signatures: dict[str, Signature] = {}
    for name in module.function_names:
        text = module.lookup_function(name).reflection.get(SIGNATURE_KEY)
        if text is not None:
            signatures.setdefault(name.removesuffix("$async"), Signature.from_json(text))
        elif not name.startswith("__"):
            description.unsigned.append(name)
    _add_signatures(description, signatures)
    _add_parameters(description, info.parameters)


def _read_trtm(description: Description) -> None:
    manifest = open_trtm(description.path).manifest
    library = LIBRARIES[manifest.flavor]
    description.target = {
        "backend": library.package,
        "version": manifest.engine_version,
        "gpu": " ".join(f"sm_{each.replace('.', '')}" for each in manifest.compute_capabilities),
    }
    description.options = dict(manifest.options)
    description.versions = dict(manifest.versions) | {library.package: manifest.engine_version}
    _add_signatures(description, {f.name: f.signature for f in manifest.functions})
    for function in manifest.functions:
        description.engines[function.name] = _engine_dict(function, manifest)
    description.state = {
        name: ScalarSpec(scalar_kind(port)) if port.is_scalar else port.spec
        for name, port in manifest.state.items()
    }
    for origin, port in manifest.parameters.items():
        scope, separator, name = origin.rpartition("::")
        lines = description.parameters.setdefault(scope, [])
        shape = port.spec.static_shape or ()
        nbytes = math.prod(shape) * port.dtype.itemsize
        lines.append(ParameterLine(name if separator else origin, port.dtype.name, shape, nbytes))


def _engine_dict(function: EntryPoint, manifest: Manifest) -> dict[str, Any]:
    return {
        "profiles": [
            {"name": profile.name, "inputs": {n: vars(b) for n, b in profile.inputs.items()}}
            for profile in function.profiles
        ],
        "members": {
            role: {"name": name, "nbytes": manifest.members[name].nbytes}
            for role, name in function.members.items()
        },
        "report": dict(function.report),
        "notes": [*function.notes, *manifest.notes],
    }


def _read_archive(description: Description) -> None:
    found = open_archive(description.path)
    lines = [
        ParameterLine(p.name, p.type_name or "blob", p.shape, p.nbytes) for p in found.values()
    ]
    description.parameters[""] = lines


_READERS: dict[FileKind, Callable[[Description], None]] = {
    FileKind.MLIR_TEXT: _read_mlir,
    FileKind.MLIR_BYTECODE: _read_mlir,
    FileKind.VMFB: _read_vmfb,
    FileKind.TRTM: _read_trtm,
    FileKind.IRPA: _read_archive,
    FileKind.SAFETENSORS: _read_archive,
    FileKind.GGUF: _read_archive,
}


def _add_signatures(description: Description, signatures: dict[str, Signature]) -> None:
    for name, signature in signatures.items():
        if name.startswith(STATE_GET):
            description.state[name.removeprefix(STATE_GET)] = signature.results[0]
        elif not name.startswith(STATE_SET):
            description.signatures.append(signature)
            description.versions = signature.producer | description.versions


def _add_parameters(description: Description, table: ParameterTable) -> None:
    for scope, parameters in table.items():
        lines = description.parameters.setdefault(scope, [])
        for name, (dtype, shape) in parameters.items():
            nbytes = math.prod(shape) * dtype.itemsize
            lines.append(ParameterLine(name, dtype.name, shape, nbytes))


def _signature_dict(signature: Signature) -> dict[str, Any]:
    return {
        "name": signature.name,
        "text": str(signature),
        "inputs": [{"name": path, **_leaf_dict(leaf)} for path, leaf in signature.named_inputs()],
        "results": [_leaf_dict(leaf) for leaf in signature.results],
        "dims": [
            {"name": dim.name, "min": dim.min, "opt": dim.opt, "max": dim.max}
            for dim in signature.dims
        ],
        "mutates": list(signature.mutates),
        "location": signature.location,
    }


def _leaf_dict(leaf: Leaf) -> dict[str, Any]:
    if isinstance(leaf, TensorSpec):
        shape = [size if isinstance(size, int) else render(size) for size in leaf.shape]
        return {"dtype": leaf.dtype.name, "shape": shape}
    if isinstance(leaf, ScalarSpec):
        return {"number": leaf.kind}
    assert isinstance(leaf, ConstantSpec)
    return {"constant": leaf.value}


def target_text(description: Description) -> str:
    """Return what a file was compiled for, in words; empty for what was not compiled."""
    return describe_target(description.target) if description.target else ""
