"""Entry points of a module, built as engines one after another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from pelton.runtime.artifacts.entry_points import EngineProfile, EntryPoint, Port, Role, member_name
from pelton.runtime.call.signature import Signature
from pelton.runtime.progress import stage

from ...raising.fx import ModuleSource
from ...raising.onnx import OnnxProgram, to_onnx
from ..base import Refusal
from .bounds import engine_profiles, profiled
from .engine import BuildSettings, build_engine, inspected
from .library import Library
from .network import Network, layer_descriptions, parse, refusals, typed_wrongly
from .options import TensorRTOptions

_MODEL = "model.onnx"
"""The file of a function's model within its folder."""


@dataclass(frozen=True)
class Built:
    """An entry point that was built.

    Attributes:
        entry_point: What the manifest says of it.
        members: The files of its members, by their names in the package.
        state: The first value of each piece of its state, by name.
        parameters: The weights that are inputs of its engine, by origin.
    """

    entry_point: EntryPoint
    members: Mapping[str, Path]
    state: Mapping[str, torch.Tensor] = field(default_factory=dict)
    parameters: Mapping[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Parsed:
    """An entry point that TensorRT takes, before its engine is built.

    Attributes:
        program: Its ONNX model.
        network: Its network.
        signature: What it takes and gives, with the profiles that were asked for.
        inputs: Of the engine.
        outputs: Of the engine.
        profiles: The sizes that the engine is built for.
    """

    program: OnnxProgram
    network: Network
    signature: Signature
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    profiles: tuple[EngineProfile, ...]


def onnx_program(source: ModuleSource, name: str, options: TensorRTOptions) -> OnnxProgram:
    """Return an entry point as the ONNX model that TensorRT gets.

    Args:
        source: The module.
        name: The entry point.
        options: What the user asked for.

    Raises:
        UnsupportedOpError: Operators that have no form in ONNX; all of them.
        DynamicShapeError: A size would be fixed that may vary.
    """
    with stage(f"{name}: to ONNX"):
        return to_onnx(source, name, weights_as_inputs=options.weights == "shared")


def network_of(
    library: Library, logging: Any, program: OnnxProgram, folder: Path
) -> Network | list[Refusal]:
    """Return the network of an ONNX model, or all that TensorRT cannot take of it.

    Args:
        library: The library.
        logging: What `Library.logging` gave: the logger and what it logs.
        program: The model.
        folder: Where files may be put.
    """
    logger, _ = logging
    network = None
    if not typed_wrongly(program):
        with stage(f"{program.name}: parsing"):
            network = parse(library, logger, program.save(folder / _MODEL))
    return network or refusals(library, logger, program)


def parsed(program: OnnxProgram, network: Network, options: TensorRTOptions) -> Parsed:
    """Return a model with its network and the sizes that its engine is for.

    Args:
        program: The ONNX model.
        network: Its network.
        options: What the user asked for, with profiles.

    Raises:
        DynamicShapeError: A dynamic dimension has no upper bound.
    """
    hosts = network.host_inputs
    inputs = tuple(Port.of(port, host=port.name in hosts) for port in program.inputs)
    signature = profiled(program.signature, options.profiles)
    return Parsed(
        program=program,
        network=network,
        signature=signature,
        inputs=inputs,
        outputs=tuple(Port.of(port) for port in program.outputs),
        profiles=engine_profiles(signature, inputs),
    )


def built(
    library: Library, logging: Any, function: Parsed, settings: BuildSettings, folder: Path
) -> Built:
    """Return an entry point with its engine and the other members that were asked for.

    Args:
        library: The library.
        logging: What `Library.logging` gave.
        function: The entry point.
        settings: What to tell the builder.
        folder: That of `network_of`, with the model.

    Raises:
        CompileError: TensorRT failed; has its log.
    """
    options, program = settings.options, function.program
    name = program.name
    with stage(f"{name}: building an engine"):
        engine = build_engine(
            library, folder / _MODEL, function.inputs, function.profiles, settings, folder,
            where=f"{name}()",
        )  # fmt: skip
    files: dict[Role, Path] = {"engine": engine.plan}
    report = {
        "layers": len(function.network.layers),
        "seconds": round(engine.seconds, 3),
        "engine_bytes": files["engine"].stat().st_size,
        "weight_bytes": program.weight_bytes,
    }
    if options.layer_info:
        files["layers"] = folder / "layers.json"
        described = {
            "network": list(layer_descriptions(function.network, program)),
            "engine": inspected(library, logging[0], engine),
        }
        files["layers"].write_text(json.dumps(described, indent=1))
    if options.reference:
        files.update(_reference(program, folder))
    return Built(
        entry_point=EntryPoint(
            signature=function.signature,
            inputs=function.inputs,
            outputs=function.outputs,
            profiles=function.profiles,
            members={role: member_name(role, name) for role in files},
            report=report,
            notes=engine.warnings,
        ),
        members={member_name(role, name): path for role, path in files.items()},
        state=program.initial_state,
        parameters=parameters_by_origin(program),
    )


def parameters_by_origin(program: OnnxProgram) -> dict[str, torch.Tensor]:
    """Return the weights that are inputs of a model, by the names that functions share."""
    ports = {port.name: port for port in program.inputs if port.kind == "parameter"}
    return {ports[name].origin: tensor for name, tensor in program.parameters.items()}


def _reference(program: OnnxProgram, folder: Path) -> dict[Role, Path]:
    """Write the graph that the reference device runs."""
    name = member_name("reference", program.name).rpartition("/")[2]
    place = folder / "reference"
    place.mkdir()
    files: dict[Role, Path] = {"reference": program.save(place / name)}
    data = place / f"{name}.data"
    if data.exists():
        files["reference_data"] = data
    return files
