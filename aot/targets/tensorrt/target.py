"""TensorRT as a target: each entry point becomes an engine, all of them one `.trtm` package."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from pelton.runtime.archive import write_archive
from pelton.runtime.archive.parameter import parameter_of
from pelton.runtime.artifacts.entry_points import PARAMETERS, STATE
from pelton.runtime.artifacts.manifest import Manifest
from pelton.runtime.artifacts.trtm import write_trtm

from ...ir.exported import ExportedModule
from ...raising.fx import ModuleSource, open_source
from ...spec.errors import ExportError, UnsupportedOpError
from ..base import Artifact, FunctionReport, make_options
from .bounds import check_profiles
from .engine import BuildSettings
from .fallback import built_by_iree
from .functions import Built, built, network_of, onnx_program, parsed
from .library import Library, compute_capabilities, find_flavor, installed_version, open_library
from .network import Network, unsupported
from .options import TensorRTOptions
from .report import report_on

_NO_PART_OF_THE_RESULT = ("flavor", "compute_capabilities", "timing_cache", "profiles")


@dataclass(frozen=True)
class TensorRTTarget:
    """TensorRT and TensorRT-RTX.

    Attributes:
        name: The name that users give.
    """

    name: str = "tensorrt"

    @property
    def timing_cache(self) -> bool:
        """TensorRT measures kernels and can keep what it measured."""
        return True

    @property
    def holds_parameters(self) -> bool:
        """External parameters become part of the package."""
        return True

    def options(self, given: Mapping[str, Any]) -> TensorRTOptions:
        """Return the options from keyword arguments.

        Raises:
            ExportError: An option is unknown or has an impossible value.
            MissingDependencyError: The library that is asked for is not installed.
        """
        options = make_options(TensorRTOptions, given, self.name)
        flavor = find_flavor(options.flavor)
        capabilities = compute_capabilities(flavor, tuple(options.compute_capabilities))
        if options.weights == "refit" and len(capabilities) != 1:
            raise ExportError(
                "engines whose weights can be replaced are for one kind of GPU: give one of "
                f"compute_capabilities={[*capabilities]}"
            )
        return options

    def checking_device(self, options: TensorRTOptions) -> str | None:
        """Return the reference device where there is no GPU and the package has its graphs."""
        return "reference" if options.reference and not torch.cuda.is_available() else None

    def identity(self, options: TensorRTOptions) -> Mapping[str, Any]:
        """Return all that decides the package beside the module and its parameters."""
        flavor = find_flavor(options.flavor)
        return {
            **_stated(options),
            "flavor": flavor,
            "engine_version": installed_version(flavor),
            "compute_capabilities": compute_capabilities(
                flavor, tuple(options.compute_capabilities)
            ),
            "profiles": repr(options.profiles),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
            "versions": _versions(),
        }

    def build(self, exported: ExportedModule, path: Path, options: TensorRTOptions) -> Artifact:
        """Compile a module to a `.trtm` package.

        Args:
            exported: The module, with the values of its external parameters.
            path: The file to write.
            options: What `options` returned.

        Raises:
            UnsupportedOpError: TensorRT cannot take some functions; names all of them with all of
                their operators.
            DynamicShapeError: A dynamic dimension has no upper bound.
            CompileError: TensorRT failed; has its log.
            ParameterError: External parameters are missing, or of another type or shape.
        """
        flavor = find_flavor(options.flavor)
        capabilities = compute_capabilities(flavor, tuple(options.compute_capabilities))
        library = open_library(flavor)
        source = _opened(exported)
        check_profiles([source.signatures[n] for n in source.entry_points()], options.profiles)
        settings = BuildSettings(options, capabilities)
        with tempfile.TemporaryDirectory(prefix="pelton-tensorrt-") as folder:
            done = _built_functions(library, exported, source, settings, Path(folder))
            notes = _notes(library, options)
            manifest = Manifest(
                flavor=flavor,
                engine_version=library.version,
                compute_capabilities=capabilities,
                functions=tuple(each.entry_point for each in done),
                options=_stated(options),
                versions=_versions(),
                notes=notes,
            )
            members = {name: file for each in done for name, file in each.members.items()}
            shared = {
                STATE: {name: value for each in done for name, value in each.state.items()},
                PARAMETERS: {name: v for each in done for name, v in each.parameters.items()},
            }
            for member, tensors in shared.items():
                if tensors:
                    members[member] = Path(folder, member)
                    write_archive(members[member], [parameter_of(n, t) for n, t in tensors.items()])
            write_trtm(path, manifest, members)
        fallen_back = [note for each in done for note in each.entry_point.notes if "IREE" in note]
        return Artifact(path, (*notes, *fallen_back))

    def report(self, exported: ExportedModule, options: TensorRTOptions) -> list[FunctionReport]:
        """Return for each entry point what TensorRT would take, without building anything.

        Raises:
            DynamicShapeError: A dimension of `profiles` is not there.
            ParameterError: External parameters are missing, or of another type or shape.
        """
        library = open_library(find_flavor(options.flavor))
        source = _opened(exported)
        names = source.entry_points()
        check_profiles([source.signatures[name] for name in names], options.profiles)
        return [report_on(library, source, name, options) for name in names]


def _opened(exported: ExportedModule) -> ModuleSource:
    return open_source(
        exported.module_op, resources=exported.resources.data, parameters=exported.parameters
    )


def _built_functions(
    library: Library,
    exported: ExportedModule,
    source: ModuleSource,
    settings: BuildSettings,
    folder: Path,
) -> Sequence[Built]:
    """Build all entry points; refuse those that cannot be in one error."""
    done: list[Built] = []
    refused: list[UnsupportedOpError] = []
    for index, name in enumerate(source.entry_points()):
        own = folder / str(index)
        own.mkdir()
        try:
            program = onnx_program(source, name, settings.options)
            with library.logging() as logging:
                network = network_of(library, logging, program, own)
                if not isinstance(network, Network):
                    raise unsupported(name, network, logging[1])
                function = parsed(program, network, settings.options)
                if not refused:  # what is built after a refusal would be thrown away
                    done.append(built(library, logging, function, settings, own))
        except UnsupportedOpError as error:
            if settings.options.fallback is None:
                refused.append(error)
                continue
            least = min(settings.compute_capabilities, key=float)
            done.append(built_by_iree(exported, source, name, least, settings.options, own, error))
    if refused:
        raise _together(refused)
    return done


def _together(refused: Sequence[UnsupportedOpError]) -> UnsupportedOpError:
    if len(refused) == 1:
        return refused[0]
    operators = dict.fromkeys(name for error in refused for name in error.operators)
    return UnsupportedOpError("; ".join(map(str, refused)), operators=tuple(operators))


def _notes(library: Library, options: TensorRTOptions) -> tuple[str, ...]:
    if library.flavor == "rtx" and options.timing_cache is not None:
        return (f"TensorRT-RTX keeps no timings; {options.timing_cache} is unused",)
    return ()


def _stated(options: TensorRTOptions) -> dict[str, Any]:
    """Return the options that the package records, as JSON."""
    named = (field.name for field in fields(options))
    stated = {name: getattr(options, name) for name in named if name not in _NO_PART_OF_THE_RESULT}
    return {**stated, "optimization_level": options.level}


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("torch", "onnx", "onnxscript")}
