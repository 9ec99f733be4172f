"""Expansion of custom operators into calls of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from iree.compiler.dialects import arith
from iree.compiler.dialects import tensor as tensor_dialect
from iree.compiler.ir import (
    BoolAttr,
    FlatSymbolRefAttr,
    FloatAttr,
    IndexType,
    InsertionPoint,
    IntegerAttr,
    Operation,
    OpView,
    RankedTensorType,
    ShapedType,
    StringAttr,
    Type,
    Value,
)

from ...ir.assertions import emit_requirement
from ...ir.module import operations_within
from ...ir.torch_types import NativeTypeConverter
from ...spec.errors import UnsupportedOpError
from ...spec.locations import location_in_mlir, with_lines
from .bodies import Argument, Bodies
from .operator import CustomOp, find

_CONSTANTS: dict[str, Callable[[Operation], Any]] = {
    "torch.constant.int": lambda op: IntegerAttr(op.attributes["value"]).value,
    "torch.constant.float": lambda op: FloatAttr(op.attributes["value"]).value,
    "torch.constant.bool": lambda op: BoolAttr(op.attributes["value"]).value,
    "torch.constant.str": lambda op: StringAttr(op.attributes["value"]).value,
    "torch.constant.none": lambda op: None,
}

_NUMBERS = {
    "!torch.int": ("i64", "torch_c.to_i64"),
    "!torch.float": ("f64", "torch_c.to_f64"),
    "!torch.bool": ("i1", "torch_c.to_i1"),
}
"""The builtin type of torch's numbers, and the operation that converts them."""

_OF_IREE = ("onnx.", "quantized_decomposed.", "torchvision.")
"""The beginnings of the names of operators outside of the dialect that IREE knows by itself."""

_VARIABLE = object()


def expand_custom_ops(module_op: Operation, *, refuse_unknown: bool = True) -> None:
    """Replace the custom operators of a module by calls of functions made of their bodies.

    Args:
        module_op: The module; it is changed.
        refuse_unknown: Refuse operators that have no body; else they stay.

    Raises:
        UnsupportedOpError: Operators have no body; names all of them, with the user's lines.
        ExportError: A body is wrong; names the operator and the line of the body.
    """
    operators = _operators(module_op)
    if refuse_unknown:
        _refuse_unknown(operators)
    bodies = Bodies(module_op)
    for operator in operators:
        op = find(name_of(operator))
        if op is None:
            continue
        with module_op.context, operator.location, InsertionPoint(operator):
            _expand(bodies, op, operator)
        operator.erase()


def name_of(operator: Operation) -> str:
    """Return the name of the operator that a `torch.operator` stands for."""
    return str(StringAttr(operator.attributes["name"]).value).removeprefix("torch.")


def _operators(module_op: Operation) -> list[Operation]:
    return [
        op
        for op in operations_within(module_op, "torch.operator")
        if not name_of(op).startswith(_OF_IREE)
    ]


def _refuse_unknown(operators: Sequence[Operation]) -> None:
    missing = with_lines(
        (name_of(operator), location_in_mlir(str(operator.location)))
        for operator in operators
        if find(name_of(operator)) is None
    )
    if missing:
        raise UnsupportedOpError(
            f"custom operators without a body: {'; '.join(missing.values())}; import what defines "
            "them, or give them one (aot.custom_ops.register_body)",
            operators=tuple(missing),
        )


def _expand(bodies: Bodies, op: CustomOp, operator: Operation) -> None:
    arguments, operands = [], []
    for formal, value in zip(op.schema.arguments, operator.operands, strict=True):
        argument, operand = _argument(bodies.types, op, formal, value)
        arguments.append(argument)
        if operand is not None:
            operands.append(operand)
    builtin = [bodies.types.torch_type_to_native(result.type) for result in operator.results]
    results = [_with_dynamic_sizes(type_) for type_ in builtin]
    symbol = bodies.symbol_for(op, arguments, results)
    call = Operation.create(
        "func.call",
        results=results,
        operands=operands,
        attributes={"callee": FlatSymbolRefAttr.get(symbol)},
    )
    for old, new, type_ in zip(operator.results, call.results, builtin, strict=True):
        if op.shapes is None:  # else the function checks all sizes itself
            _require_static_sizes(op, new, type_)
        sized = _cast(new, type_)
        converted = Operation.create(
            "torch_c.from_builtin_tensor", results=[old.type], operands=[sized]
        )
        old.replace_all_uses_with(converted.result)


def _require_static_sizes(op: CustomOp, value: Value, type_: Type) -> None:
    """Check the sizes of a result that the program knows as numbers."""
    tensor = RankedTensorType(type_)
    for axis, size in enumerate(tensor.shape):
        if not tensor.is_dynamic_dim(axis):
            place = arith.constant(IndexType.get(), axis)
            expected = arith.constant(IndexType.get(), size)
            found = tensor_dialect.dim(value, place)
            equal = arith.cmpi(arith.CmpIPredicate.eq, found, expected)
            what = f"size {axis} of what its body returned is not {size}"
            emit_requirement(equal, f"custom operator {op.name}: {what}")


def _argument(
    types: NativeTypeConverter, op: CustomOp, formal: torch.Argument, value: Value
) -> tuple[Argument, Value | None]:
    """Return an argument, and the operand to pass for it; None for a constant."""
    text = str(value.type)
    if text.startswith("!torch.vtensor"):
        type_ = types.torch_type_to_native(value.type)
        converted = Operation.create(
            "torch_c.to_builtin_tensor", results=[type_], operands=[value]
        ).result
        general = _with_dynamic_sizes(type_)
        return Argument(formal.name, str(general)), _cast(converted, general)
    constant = _constant(value)
    if constant is _VARIABLE and text not in _NUMBERS:
        raise op.error(f"argument {formal.name!r} is known only when the program runs")
    if constant is not _VARIABLE:
        return Argument(formal.name, None, constant), None
    type_name, conversion = _NUMBERS[text]
    number = Operation.create(conversion, results=[Type.parse(type_name)], operands=[value]).result
    return Argument(formal.name, type_name), number


def _constant(value: Value) -> Any:
    """Return the Python value of a constant, or `_VARIABLE`."""
    owner = value.owner
    if not isinstance(owner, (Operation, OpView)):
        return _VARIABLE
    operation = owner.operation
    if operation.name in _CONSTANTS:
        return _CONSTANTS[operation.name](operation)
    if operation.name == "torch.derefine":
        return _constant(operation.operands[0])
    if operation.name == "torch.prim.ListConstruct":
        items = [_constant(item) for item in operation.operands]
        return _VARIABLE if any(item is _VARIABLE for item in items) else items
    return _VARIABLE


def _with_dynamic_sizes(type_: Type) -> Type:
    tensor = RankedTensorType(type_)
    return RankedTensorType.get([ShapedType.get_dynamic_size()] * tensor.rank, tensor.element_type)


def _cast(value: Value, type_: Type) -> Value:
    return value if value.type == type_ else tensor_dialect.cast(type_, value)
