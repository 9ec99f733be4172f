"""Export PyTorch programs ahead of time: models and functions to MLIR, and on to artifacts."""

from .decompositions import current_aot_decompositions, extend_aot_decompositions
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
from .export import export
from .externalize import externalize_module_parameters
from .output import ExportOutput, ImportPhase
from .params import (
    ParameterArchive,
    ParameterArchiveBuilder,
    ParameterArchiveEntry,
    save_module_parameters,
)
from .specs import DimensionInputInfo, InputInfo, NamedDimension, ShapeBounds
from .tensor_traits import DeviceAffinity, DeviceTensorTrait, ExternalTensorTrait

__all__ = [
    "ArtifactError",
    "CompileError",
    "DeviceAffinity",
    "DeviceError",
    "DeviceTensorTrait",
    "DimensionInputInfo",
    "DynamicShapeError",
    "ExportError",
    "ExportOutput",
    "ExternalTensorTrait",
    "ImportPhase",
    "InputInfo",
    "MissingDependencyError",
    "NamedDimension",
    "ParameterArchive",
    "ParameterArchiveBuilder",
    "ParameterArchiveEntry",
    "ParameterError",
    "PeltonError",
    "ShapeBounds",
    "SignatureError",
    "UnsupportedOpError",
    "current_aot_decompositions",
    "export",
    "extend_aot_decompositions",
    "externalize_module_parameters",
    "save_module_parameters",
]
