"""Export PyTorch programs ahead of time: models and functions to MLIR, and on to artifacts."""

from . import _requirements as _requirements
from .builder import GlobalAttributes
from .compile import compile
from .compiled_module import CompiledModule
from .config import config
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
from .fx_programs import FxPrograms, FxProgramsBuilder
from .output import ExportOutput
from .params import (
    ParameterArchive,
    ParameterArchiveBuilder,
    ParameterArchiveEntry,
    save_module_parameters,
)
from .phases import ImportPhase
from .procedural.abstract import (
    AbstractBool,
    AbstractF32,
    AbstractF64,
    AbstractI32,
    AbstractI64,
    AbstractIndex,
    AbstractTensor,
    abstractify,
)
from .procedural.control_flow import cond, for_loop, while_loop
from .procedural.declare import (
    export_buffers,
    export_global,
    export_global_tree,
    export_parameters,
)
from .procedural.emitter import IREE, print
from .procedural.errors import ProcedureTraceError
from .procedural.jittable import jittable
from .specs import DimensionInputInfo, InputInfo, NamedDimension, ShapeBounds
from .tensor_traits import DeviceAffinity, DeviceTensorTrait, ExternalTensorTrait
from .to_torch import TorchProgram, to_torch
from .tuning import Trial, Tuned, tune
from .verify import Numerics, NumericsError, Report

__all__ = [
    "IREE",
    "AbstractBool",
    "AbstractF32",
    "AbstractF64",
    "AbstractI32",
    "AbstractI64",
    "AbstractIndex",
    "AbstractTensor",
    "ArtifactError",
    "CompileError",
    "CompiledModule",
    "DeviceAffinity",
    "DeviceError",
    "DeviceTensorTrait",
    "DimensionInputInfo",
    "DynamicShapeError",
    "ExportError",
    "ExportOutput",
    "ExternalTensorTrait",
    "FxPrograms",
    "FxProgramsBuilder",
    "GlobalAttributes",
    "ImportPhase",
    "InputInfo",
    "MissingDependencyError",
    "NamedDimension",
    "Numerics",
    "NumericsError",
    "ParameterArchive",
    "ParameterArchiveBuilder",
    "ParameterArchiveEntry",
    "ParameterError",
    "PeltonError",
    "ProcedureTraceError",
    "Report",
    "ShapeBounds",
    "SignatureError",
    "TorchProgram",
    "Trial",
    "Tuned",
    "UnsupportedOpError",
    "abstractify",
    "compile",
    "cond",
    "config",
    "current_aot_decompositions",
    "export",
    "export_buffers",
    "export_global",
    "export_global_tree",
    "export_parameters",
    "extend_aot_decompositions",
    "externalize_module_parameters",
    "for_loop",
    "jittable",
    "print",
    "save_module_parameters",
    "to_torch",
    "tune",
    "while_loop",
]
