"""Package loader: the engine and the weights of a `.trtm`, by the device and the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..archive import archives
from ..archive.parameter import Parameter
from ..artifacts.trtm import Package, open_trtm
from ..errors import DeviceError, ParameterError
from .engine import LoadedModule
from .onnxruntime import ReferenceModule
from .tensorrt import TensorRTModule
from .trtm_module import REFERENCE


def load_trtm(
    path: Path,
    device: str | Sequence[str] | None,
    parameters: Any,
    allow_unused_parameters: bool,
) -> LoadedModule:
    """Load a `.trtm` on the engine of a device.

    Args:
        path: The file.
        device: `cuda`, one with an index as in `cuda:1`, or `reference`; None: `cuda`.
        parameters: Where external parameters come from, as for `runtime.load`.
        allow_unused_parameters: Accept parameters that the package does not use.

    Raises:
        ArtifactError: The file is missing, damaged, or not a package.
        DeviceError: There is no such device, or the engines are for another one.
        MissingDependencyError: The library of the engines is not installed.
        ParameterError: Parameters are missing, not needed, or of another type or shape.
    """
    package = open_trtm(path)
    if device is not None and not isinstance(device, str):
        names = list(device)
        if len(names) != 1:
            raise DeviceError(f"{path} is for 1 device, device= names {len(names)}: {names}")
        device = names[0]
    kind = (device or "cuda").partition(":")[0]
    if kind not in ("cuda", REFERENCE) or (kind == REFERENCE and device != REFERENCE):
        raise DeviceError(
            f"{path} holds engines for CUDA GPUs, there is no device {device!r} for it; known: "
            f"cuda, with an optional index as in cuda:1, and {REFERENCE}, which runs its ONNX "
            "graphs on the processor"
        )
    weights = choose_weights(package, parameters, allow_unused_parameters)
    if kind == REFERENCE:
        return ReferenceModule(package, weights)
    return TensorRTModule(package, device or "cuda", weights)


def choose_weights(package: Package, given: Any, allow_unused: bool) -> dict[str, Parameter]:
    """Return the weights that are inputs of engines, by origin: given ones before the package's.

    Args:
        package: The opened file.
        given: What the user gives, as for `runtime.load`; None: the package's own weights.
        allow_unused: Accept parameters that the package does not use.

    Raises:
        ParameterError: Those that were given are not what the engines take.
    """
    weights: dict[str, Parameter] = dict(package.parameters)
    if given is None:
        return weights
    needed: dict[str, dict[str, Any]] = {}
    for origin, port in package.manifest.parameters.items():
        scope, separator, name = origin.partition("::")
        if separator:
            needed.setdefault(scope, {})[name] = (port.dtype, port.spec.static_shape)
    if not needed:
        raise ParameterError(
            f"{package.path} takes no parameters: its weights are in its engines; compile it "
            "with weights='shared' to keep them outside"
        )
    sets = archives.load_parameters(given, tuple(needed))
    archives.check_parameters(needed, sets, allow_unused=allow_unused)
    for scope, names in needed.items():
        weights.update({f"{scope}::{name}": sets[scope][name] for name in names})
    return weights
