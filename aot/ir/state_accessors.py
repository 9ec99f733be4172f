"""State accessors: functions by which a runtime reads and writes the state of a module."""

from __future__ import annotations

from iree.compiler.dialects import func as func_dialect
from iree.compiler.ir import (
    FlatSymbolRefAttr,
    FloatType,
    FunctionType,
    InsertionPoint,
    Location,
    Operation,
    RankedTensorType,
    StringAttr,
    Type,
    TypeAttr,
)

from pelton.runtime.call.dtypes import BY_TORCH_MLIR, DTYPES, DType
from pelton.runtime.call.signature import (
    STATE_GET,
    STATE_SET,
    Parameter,
    ScalarSpec,
    Signature,
    TensorSpec,
)

from .builder import DTYPE_ATTRIBUTE, ModuleBuilder
from .initializers import copy_initializer
from .module import set_signature


def state_name(symbol: str) -> str:
    """Return the name of the state in a global for users: its `state_dict` key or attribute path.

    Example:
        >>> state_name("__auto.encoder.count"), state_name("_cache.global"), state_name("_kv.keys")
        ('encoder.count', 'cache', 'kv.keys')
    """
    if symbol.startswith("__auto."):
        return symbol.removeprefix("__auto.")
    return symbol.removeprefix("_").removesuffix(".global")


def add_state_accessors(builder: ModuleBuilder) -> None:
    """Add a getter and a setter for each mutable global of the module.

    One whose values come from an archive also gets memory of its own.
    """
    for op in list(builder.body.operations):
        operation = op.operation
        if operation.name == "util.global" and "is_mutable" in operation.attributes:
            type_ = TypeAttr(operation.attributes["type"]).value
            if is_external(operation) and isinstance(type_, RankedTensorType):
                symbol = StringAttr(operation.attributes["sym_name"]).value
                copy_initializer(symbol, type_, InsertionPoint.after(operation))
            if "?" not in str(type_):
                _add_pair(builder, operation, type_)


def is_external(operation: Operation) -> bool:
    """Return whether the initial value of a global comes from an archive."""
    attributes = operation.attributes
    if "initial_value" not in attributes:
        return False
    try:
        return str(attributes["initial_value"])[:32].startswith("#flow.parameter")
    except TypeError:  # the bindings refuse elements of complex type
        return False


def _add_pair(builder: ModuleBuilder, operation: Operation, type_: Type) -> None:
    symbol = StringAttr(operation.attributes["sym_name"]).value
    name = state_name(symbol)
    if STATE_GET + name in builder.symbol_table:
        name = symbol
    spec = _spec(operation, type_)
    reference = {"global": FlatSymbolRefAttr.get(symbol, builder.context)}
    with builder.ip, Location.unknown(builder.context):
        getter = func_dialect.FuncOp(STATE_GET + name, FunctionType.get([], [type_]))
        with InsertionPoint(getter.add_entry_block()):
            load = Operation.create("util.global.load", results=[type_], attributes=reference)
            func_dialect.ReturnOp([load.result])
        setter = func_dialect.FuncOp(STATE_SET + name, FunctionType.get([type_], []))
        with InsertionPoint(setter.add_entry_block()):
            Operation.create(
                "util.global.store", operands=[setter.arguments[0]], attributes=reference
            )
            func_dialect.ReturnOp([])
    gets = Signature(STATE_GET + name, result_tree=0, results=(spec,))
    value = Parameter("value", "POSITIONAL_OR_KEYWORD", 0)
    sets = Signature(STATE_SET + name, (value,), (spec,), mutates=(name,))
    for function, signature in ((getter, gets), (setter, sets)):
        builder.symbol_table.insert(function)
        set_signature(function.operation, signature)


def _spec(operation: Operation, type_: Type) -> TensorSpec | ScalarSpec:
    if isinstance(type_, RankedTensorType):
        return TensorSpec(_dtype(operation, type_), tuple(type_.shape))
    kind = "float" if isinstance(type_, FloatType) else "int"
    return ScalarSpec("bool" if str(type_) == "i1" else kind)


def _dtype(operation: Operation, type_: Type) -> DType:
    if DTYPE_ATTRIBUTE in operation.attributes:
        return DTYPES[StringAttr(operation.attributes[DTYPE_ATTRIBUTE]).value]
    element = str(type_.element_type)  # type: ignore[attr-defined]
    return BY_TORCH_MLIR.get(f"s{element}") or BY_TORCH_MLIR[element]
