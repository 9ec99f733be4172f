"""Load and call what Pelton compiled; needs numpy and an engine, neither torch nor a compiler."""

from .devices import DeviceInfo, devices
from .errors import (
    ArtifactError,
    CompileError,
    DeviceError,
    DynamicShapeError,
    ExportError,
    MissingDependencyError,
    ParameterError,
    PeltonError,
    SignatureError,
    UnsupportedOpError,
)
from .executable import Executable, Function, State, load
from .signature import Signature

__all__ = [
    "ArtifactError",
    "CompileError",
    "DeviceError",
    "DeviceInfo",
    "DynamicShapeError",
    "Executable",
    "ExportError",
    "Function",
    "MissingDependencyError",
    "ParameterError",
    "PeltonError",
    "Signature",
    "SignatureError",
    "State",
    "UnsupportedOpError",
    "devices",
    "load",
]
