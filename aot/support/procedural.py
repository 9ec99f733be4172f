"""The names that extensions of procedural modules use: traced values, traces, declarations, IR.

Everything here is defined elsewhere.
"""

from contextlib import contextmanager
from typing import Any, cast

from iree.compiler.ir import (
    DictAttr,
    F32Type,
    F64Type,
    IndexType,
    IntegerType,
    Location,
    Operation,
    RankedTensorType,
    ShapedType,
    StringAttr,
    Value,
)
from iree.compiler.ir import Type as IrType
from torch.utils._pytree import TreeSpec, tree_flatten, tree_map

from ..affinity import attributes_from_argument_device_affinities
from ..builder import GlobalAttributes, ModuleBuilder
from ..procedural.abstract import (
    Abstractifiable,
    AbstractIntrinsic,
    AbstractScalar,
    AbstractTensor,
    AbstractTypedef,
    TreeAbstractifiable,
    abstractify,
    abstractify_single_value,
)
from ..procedural.current import current_ir_trace, new_ir_trace_scope
from ..procedural.emitter import IREEEmitter
from ..procedural.errors import ProcedureTraceError
from ..procedural.function_builder import FunctionBuilder
from ..procedural.globals_def import GlobalsDef
from ..procedural.intrinsics import CallableIntrinsic, EmptyType, Intrinsic
from ..procedural.live_globals import (
    IrGlobalScalar,
    IrGlobalTensor,
    LiveGlobalCollectionProxy,
    MaterializedGlobal,
)
from ..procedural.procedure_trace import ProcedureTrace, convert_py_value_to_ir
from ..procedural.scalars import IrImmediateScalar, IrScalar
from ..procedural.tensors import IrImmediateTensor, IrTensor, build_tensor_dim_value
from ..procedural.trace import IrTrace
from ..tensor_traits import DeviceAffinity

__all__ = [
    "AbstractIntrinsic",
    "AbstractScalar",
    "AbstractTensor",
    "AbstractTypedef",
    "Abstractifiable",
    "Any",
    "CallableIntrinsic",
    "DeviceAffinity",
    "DictAttr",
    "EmptyType",
    "F32Type",
    "F64Type",
    "FunctionBuilder",
    "GlobalAttributes",
    "GlobalsDef",
    "IREEEmitter",
    "IndexType",
    "IntegerType",
    "Intrinsic",
    "IrGlobalScalar",
    "IrGlobalTensor",
    "IrImmediateScalar",
    "IrImmediateTensor",
    "IrScalar",
    "IrTensor",
    "IrTrace",
    "IrType",
    "LiveGlobalCollectionProxy",
    "Location",
    "MaterializedGlobal",
    "ModuleBuilder",
    "Operation",
    "ProcedureTrace",
    "ProcedureTraceError",
    "RankedTensorType",
    "ShapedType",
    "StringAttr",
    "TreeAbstractifiable",
    "TreeSpec",
    "Value",
    "abstractify",
    "abstractify_single_value",
    "attributes_from_argument_device_affinities",
    "build_tensor_dim_value",
    "cast",
    "contextmanager",
    "convert_py_value_to_ir",
    "current_ir_trace",
    "new_ir_trace_scope",
    "tree_flatten",
    "tree_map",
]
