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

from ..compat.pytrees import TreeSpec, tree_flatten, tree_map
from ..ir.affinity import attributes_from_argument_device_affinities
from ..ir.builder import GlobalAttributes, ModuleBuilder
from ..procedural.globals.declaration import GlobalsDef
from ..procedural.globals.live_globals import (
    IrGlobalScalar,
    IrGlobalTensor,
    LiveGlobalCollectionProxy,
    MaterializedGlobal,
)
from ..procedural.globals.types import (
    Abstractifiable,
    AbstractIntrinsic,
    AbstractScalar,
    AbstractTensor,
    AbstractTypedef,
    TreeAbstractifiable,
    abstractify,
    abstractify_single_value,
)
from ..procedural.module.emitter import IREEEmitter
from ..procedural.module.function_builder import FunctionBuilder
from ..procedural.module.procedure_trace import ProcedureTrace, convert_py_value_to_ir
from ..procedural.module.trace import IrTrace
from ..procedural.values.current import current_ir_trace, new_ir_trace_scope
from ..procedural.values.errors import ProcedureTraceError
from ..procedural.values.intrinsics import CallableIntrinsic, EmptyType, Intrinsic
from ..procedural.values.scalars import IrImmediateScalar, IrScalar
from ..procedural.values.tensors import IrImmediateTensor, IrTensor, build_tensor_dim_value
from ..spec.tensor_traits import DeviceAffinity

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
