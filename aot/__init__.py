"""Export PyTorch programs ahead of time: models and functions to MLIR, and on to artifacts."""

from . import _requirements as _requirements
from .capture.parameters.archives import (
    ParameterArchive,
    ParameterArchiveBuilder,
    ParameterArchiveEntry,
    save_module_parameters,
)
from .capture.parameters.externalize import externalize_module_parameters
from .capture.programs.fx_programs import FxPrograms, FxProgramsBuilder
from .compile import compile
from .decompositions import current_aot_decompositions, extend_aot_decompositions
from .export import export
from .ir.builder import GlobalAttributes
from .lowering.import_phase import ImportPhase
from .output import ExportOutput
from .procedural.calls.jittable import jittable
from .procedural.globals.declare import (
    export_buffers,
    export_global,
    export_global_tree,
    export_parameters,
)
from .procedural.globals.types import (
    AbstractBool,
    AbstractF32,
    AbstractF64,
    AbstractI32,
    AbstractI64,
    AbstractIndex,
    AbstractTensor,
    abstractify,
)
from .procedural.module.compiled_module import CompiledModule
from .procedural.module.control_flow import cond, for_loop, while_loop
from .procedural.module.emitter import IREE, print
from .procedural.values.errors import ProcedureTraceError
from .raising.torch_program import TorchProgram, to_torch
from .spec.config import config
from .spec.errors import (
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
from .spec.inputs import DimensionInputInfo, InputInfo, NamedDimension, ShapeBounds
from .spec.tensor_traits import DeviceAffinity, DeviceTensorTrait, ExternalTensorTrait
from .verify import Numerics, NumericsError, Report
from .verify.tuning import Trial, Tuned, tune

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
    "IndexOutOfRangeError",
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
