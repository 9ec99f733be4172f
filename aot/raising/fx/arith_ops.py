"""Operations of `arith` and `math`, on scalars and elementwise on tensors.

Integers of 64 bits that come from sizes and constants stay symbolic numbers under the operations
that torch's size expressions have, so that they may drive shapes. All others are 0-d tensors, which
have exactly the arithmetic of their types.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from iree.compiler.ir import IntegerAttr, Operation
from torch.fx import Node

from ...spec.errors import UnsupportedOpError
from .constants import number
from .raiser import HandlerTable, Raiser
from .scope import dtype_of
from .types import is_python_number, tensor_type, value_dtype

aten = torch.ops.aten
_symbolic: Any = torch  # whose functions of symbolic numbers have no types


@dataclass(frozen=True)
class _Form:
    """An operation in torch: on tensors, and where size expressions have it on numbers."""

    tensors: Callable[..., Any]
    numbers: Callable[..., Any] | None = None
    rounding: str | None = None


_FORMS: dict[str, _Form] = {
    "arith.addi": _Form(aten.add.Tensor, operator.add),
    "arith.subi": _Form(aten.sub.Tensor, operator.sub),
    "arith.muli": _Form(aten.mul.Tensor, operator.mul),
    "arith.floordivsi": _Form(aten.div.Tensor_mode, operator.floordiv, "floor"),
    "arith.divsi": _Form(aten.div.Tensor_mode, rounding="trunc"),
    "arith.remsi": _Form(aten.fmod.Tensor),
    "arith.maxsi": _Form(aten.maximum.default, _symbolic.sym_max),
    "arith.minsi": _Form(aten.minimum.default, _symbolic.sym_min),
    "arith.andi": _Form(aten.bitwise_and.Tensor),
    "arith.ori": _Form(aten.bitwise_or.Tensor),
    "arith.xori": _Form(aten.bitwise_xor.Tensor),
    "arith.shli": _Form(aten.bitwise_left_shift.Tensor),
    "arith.shrsi": _Form(aten.bitwise_right_shift.Tensor),
    "arith.addf": _Form(aten.add.Tensor),
    "arith.subf": _Form(aten.sub.Tensor),
    "arith.mulf": _Form(aten.mul.Tensor),
    "arith.divf": _Form(aten.div.Tensor),
    "arith.remf": _Form(aten.fmod.Tensor),
    "arith.maximumf": _Form(aten.maximum.default),
    "arith.minimumf": _Form(aten.minimum.default),
    "arith.negf": _Form(aten.neg.default),
    "math.absf": _Form(aten.abs.default),
    "math.floor": _Form(aten.floor.default),
    "math.powf": _Form(aten.pow.Tensor_Tensor),
}

_CASTS = (
    "extf", "extsi", "extui", "fptosi", "index_cast", "index_castui", "sitofp", "truncf", "trunci",
    "uitofp",
)  # fmt: skip

_INTEGER_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")
_FIRST_UNSIGNED = 6
_FLOAT_COMPARISONS = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 13: "ne"}


def _constant(raiser: Raiser, op: Operation) -> None:
    type_ = tensor_type(op.results[0].type)
    if type_ is None:
        raiser.bind(op, number(op, "value"))
        return
    shape = tuple(size for size in type_.shape if size is not None)
    raiser.bind(
        op, raiser.constant(raiser.source.constants.tensor(op, "value", shape, type_.dtype))
    )


def _arithmetic(raiser: Raiser, op: Operation) -> None:
    form, values = _FORMS[op.name], raiser.values(op.operands)
    if form.numbers is not None and is_python_number(op.results[0].type):
        if all(dtype_of(value) is None for value in values):
            raiser.bind(op, _computed(raiser, form.numbers, values))
            return
    dtype = _common_dtype(op, values)
    tensors = [raiser.as_tensor(value, dtype) for value in values]
    mode = {} if form.rounding is None else {"rounding_mode": form.rounding}
    raiser.bind(op, raiser.emit(form.tensors, *tensors, dtype=dtype, keywords=mode))


def _computed(raiser: Raiser, function: Callable[..., Any], values: list[Any]) -> Any:
    symbolic = any(isinstance(value, Node) for value in values)
    return raiser.emit(function, *values) if symbolic else function(*values)


def _common_dtype(op: Operation, values: list[Any]) -> torch.dtype:
    """Return the element type of the operands: what a tensor has, as signs are not in the types."""
    held = [found for value in values if (found := dtype_of(value)) is not None]
    return held[0] if held else value_dtype(op.operands[0].type)


def _compare(raiser: Raiser, op: Operation) -> None:
    predicate = IntegerAttr(op.attributes["predicate"]).value
    values = raiser.values(op.operands)
    dtype = _common_dtype(op, values)
    if op.name == "arith.cmpf":
        name = _FLOAT_COMPARISONS.get(predicate)
    else:
        signed = dtype.is_signed and dtype is not torch.bool
        name = _INTEGER_COMPARISONS[predicate]
        name = None if predicate >= _FIRST_UNSIGNED and signed else name
    if name is None:
        raise UnsupportedOpError(f"{op.name} with predicate {predicate} has no form in torch")
    if not any(isinstance(value, Node) for value in values):
        raiser.bind(op, getattr(operator, name)(*values))
        return
    left, right = (raiser.as_tensor(value, dtype) for value in values)
    overload = getattr(aten, name).Tensor
    raiser.bind(op, raiser.emit(overload, left, right, dtype=torch.bool))


def _select(raiser: Raiser, op: Operation) -> None:
    condition, yes, no = raiser.values(op.operands)
    if isinstance(condition, bool):
        raiser.bind(op, yes if condition else no)
        return
    extreme = _extreme(op)
    if extreme is not None and dtype_of(yes) is None and dtype_of(no) is None:
        raiser.bind(op, _computed(raiser, extreme, [yes, no]))
        return
    dtype = dtype_of(yes) or dtype_of(no) or value_dtype(op.results[0].type)
    tensors = (raiser.as_tensor(yes, dtype), raiser.as_tensor(no, dtype))
    raiser.bind(op, raiser.emit(aten.where.self, condition, *tensors, dtype=dtype))


def _extreme(op: Operation) -> Callable[..., Any] | None:
    """Return max for `b if a < b else a`, min for `b if a > b else a`, on sizes; else None."""
    condition, yes, no = op.operands
    compare = condition.owner
    if not isinstance(compare, Operation) and hasattr(compare, "operation"):
        compare = compare.operation
    if getattr(compare, "name", "") != "arith.cmpi" or not is_python_number(yes.type):
        return None
    if [*compare.operands] != [no, yes]:
        return None
    found: dict[int, Callable[..., Any]] = {2: _symbolic.sym_max, 4: _symbolic.sym_min}
    return found.get(IntegerAttr(compare.attributes["predicate"]).value)


def _cast(raiser: Raiser, op: Operation) -> None:
    value, result = raiser.value(op.operands[0]), op.results[0].type
    target = value_dtype(result)
    if dtype_of(value) is None:
        if is_python_number(result) and not isinstance(value, float):
            raiser.bind(op, int(value) if isinstance(value, bool) else value)
            return
        value = raiser.as_tensor(value, value_dtype(op.operands[0].type))
    held = dtype_of(value)
    if held is torch.uint8 and target is torch.int8:
        target = torch.uint8
    raiser.bind(op, value if held == target else raiser.convert(value, target))


HANDLERS: HandlerTable = {
    "arith.constant": _constant,
    "arith.cmpi": _compare,
    "arith.cmpf": _compare,
    "arith.select": _select,
    **dict.fromkeys(_FORMS, _arithmetic),
    **{f"arith.{name}": _cast for name in _CASTS},
}
"""Arithmetic of procedures."""
