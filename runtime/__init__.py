"""Runtime: loads and calls compiled artifacts, with numpy and an engine, without torch."""

from .archive.archives import open_archive
from .archive.parameter_set import ParameterSet
from .call.input_infos import DimensionInputInfo, InputInfo, ScalarInputInfo, ShapeBounds
from .call.signature import Signature
from .call.sizes import Profile
from .device.devices import DeviceInfo, devices
from .errors import (
    ArtifactError,
    CompileError,
    DeviceError,
    DynamicShapeError,
    ExportError,
    IndexOutOfRangeError,
    MissingDependencyError,
    ParameterError,
    PeltonError,
    SignatureError,
    UnsupportedOpError,
)
from .executable import Executable, Function, State, load

__all__ = [
    "ArtifactError",
    "CompileError",
    "DeviceError",
    "DeviceInfo",
    "DimensionInputInfo",
    "DynamicShapeError",
    "Executable",
    "ExportError",
    "Function",
    "IndexOutOfRangeError",
    "InputInfo",
    "MissingDependencyError",
    "ParameterError",
    "ParameterSet",
    "PeltonError",
    "Profile",
    "ScalarInputInfo",
    "ShapeBounds",
    "Signature",
    "SignatureError",
    "State",
    "UnsupportedOpError",
    "devices",
    "load",
    "open_archive",
]
