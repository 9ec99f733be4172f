"""TensorRT packages for tests, made by hand from exported programs: the engines are no engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pelton import aot
from pelton.aot.raising.onnx import OnnxProgram
from pelton.runtime.archive import write_archive
from pelton.runtime.archive.parameter import parameter_of
from pelton.runtime.artifacts.entry_points import (
    PARAMETERS,
    STATE,
    Bounds,
    EngineProfile,
    EntryPoint,
    Port,
    Role,
    member_name,
)
from pelton.runtime.artifacts.manifest import Manifest
from pelton.runtime.artifacts.trtm import Contents, write_trtm
from pelton.runtime.call import sizes
from pelton.runtime.call.signature import Signature

ENGINE_VERSION = "1.7.1.116"


def entry_point(program: OnnxProgram, **changes: Any) -> EntryPoint:
    """Describe an ONNX model as an entry point with an engine and a reference graph."""
    inputs = tuple(Port.of(port, host=port.is_python_number) for port in program.inputs)
    roles: tuple[Role, ...] = ("engine", "reference")
    entry = EntryPoint(
        program.signature,
        inputs,
        tuple(Port.of(port) for port in program.outputs),
        (profile_of(program.signature, inputs),),
        {role: member_name(role, program.name) for role in roles},
    )
    return replace(entry, **changes)


def profile_of(signature: Signature, inputs: tuple[Port, ...], name: str = "default") -> Any:
    """Return the profile of the bounds that the dimensions have."""
    points = [
        {dim.name: dim.min for dim in signature.dims},
        {dim.name: dim.min if dim.opt is None else dim.opt for dim in signature.dims},
        {dim.name: dim.max or 64 for dim in signature.dims},
    ]

    def bounds(port: Port, size: Any) -> Bounds:
        shape = (size,) if port.host else port.shape
        return Bounds(*(tuple(sizes.evaluate(s, point) or 0 for s in shape) for point in points))

    leaves = [leaf for leaf in signature.inputs if not hasattr(leaf, "value")]
    given = [getattr(leaf, "size", None) for leaf in leaves] + [None] * len(inputs)
    dynamic = [
        (port, size)
        for port, size in zip(inputs, given, strict=False)
        if port.host or port.spec.static_shape is None
    ]
    return EngineProfile(name, {port.name: bounds(port, size) for port, size in dynamic})


def package(
    out: aot.ExportOutput, folder: Path, *names: str, **changes: Any
) -> tuple[Manifest, dict[str, Contents]]:
    """Return manifest and members for the entry points of a module."""
    programs = [out.to_onnx(folder / f"{name}.onnx", name) for name in names or ("main",)]
    return package_of(programs, folder, **changes)


def package_of(
    programs: Sequence[OnnxProgram], folder: Path, **changes: Any
) -> tuple[Manifest, dict[str, Contents]]:
    """Return manifest and members for ONNX models."""
    manifest = Manifest(
        "rtx",
        ENGINE_VERSION,
        ("8.6", "8.9"),
        tuple(entry_point(program) for program in programs),
        {"optimization_level": 3},
        {"pelton": "0.1.0"},
    )
    members: dict[str, Contents] = {}
    for program in programs:
        members[member_name("engine", program.name)] = f"engine of {program.name}".encode()
        members[member_name("reference", program.name)] = program.to_bytes()
    state = {k: v for program in programs for k, v in program.initial_state.items()}
    if state:
        members[STATE] = archive(folder / STATE, state)
    parameters = {
        port.origin: program.parameters[port.name]
        for program in programs
        for port in program.inputs
        if port.kind == "parameter"
    }
    if parameters:
        members[PARAMETERS] = archive(folder / PARAMETERS, parameters)
    return replace(manifest, **changes), members


def archive(path: Path, tensors: Mapping[str, Any]) -> Path:
    write_archive(path, [parameter_of(name, tensor) for name, tensor in tensors.items()])
    return path


def write_package(out: aot.ExportOutput, folder: Path, *names: str, **changes: Any) -> Path:
    """Write the package of a module and return its path."""
    path = folder / "m.trtm"
    write_trtm(path, *package(out, folder, *names, **changes))
    return path


def with_graphs_as_engines(
    out: aot.ExportOutput, folder: Path, *names: str, **changes: Any
) -> Path:
    """Write a package whose engines are its ONNX graphs, as the fake GPU runs them."""
    return with_engines(*package(out, folder, *names, **changes), folder / "m.trtm")


def with_engines(manifest: Manifest, members: dict[str, Contents], path: Path) -> Path:
    """Write a package whose engines are its ONNX graphs."""
    for function in manifest.functions:
        engine = member_name("engine", function.name)
        members[engine] = members[member_name("reference", function.name)]
    write_trtm(path, manifest, members)
    return path
