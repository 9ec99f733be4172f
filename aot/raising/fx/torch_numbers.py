"""Operators of the torch dialect on Python scalars."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from iree.compiler.ir import Operation
from torch.fx import Node

from .raiser import HandlerTable, Raiser
from .torch_operators import raise_operator
from .types import tensor_type

_symbolic: Any = torch  # whose functions of symbolic numbers have no types


def _to_int(x: Any) -> Any:
    if isinstance(x, (bool, torch.SymBool)):
        return _symbolic.sym_ite(x, 1, 0)
    return _symbolic.sym_int(x)


def _to_float(x: Any) -> Any:
    return _symbolic.sym_float(_to_int(x) if isinstance(x, (bool, torch.SymBool)) else x)


def _to_bool(x: Any) -> Any:
    return x != 0


def _square_root(x: Any) -> Any:
    return _symbolic.sym_float(x) ** 0.5


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_KINDS = ("int", "float", "bool", "float_int", "int_float")

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "neg": operator.neg,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f"aten.{name}.{kind}": getattr(operator, name) for name in _COMPARISONS for kind in _KINDS},
    **{f"aten.{name}.{kind}": found for name, found in _ARITHMETIC.items() for kind in _KINDS},
    **{f"aten.{name}": found for name, found in _ARITHMETIC.items()},
    "aten.Bool.int": _to_bool,
    "aten.Bool.float": _to_bool,
    "aten.Float.Scalar": _to_float,
    "aten.Float.int": _to_float,
    "aten.Float.bool": _to_float,
    "aten.Int.Scalar": _to_int,
    "aten.Int.float": _to_int,
    "aten.Int.bool": _to_int,
    "aten.__and__.bool": operator.and_,
    "aten.__or__.bool": operator.or_,
    "aten.__not__": _symbolic.sym_not,
    "aten.ceil.float": math.ceil,
    "aten.ceil.Scalar": math.ceil,
    "aten.sqrt.int": _square_root,
    "prim.max.int": _symbolic.sym_max,
    "prim.min.int": _symbolic.sym_min,
}
"""What operators of the torch dialect compute where all their operands are numbers."""


def _compute(raiser: Raiser, op: Operation) -> None:
    if any(tensor_type(value.type) is not None for value in op.operands):
        raise_operator(raiser, op)  # an operator on tensors of the same name, such as neg
        return
    function = FUNCTIONS[op.name.removeprefix("torch.")]
    numbers = [raiser.as_number(value) for value in raiser.values(op.operands)]
    if any(isinstance(number, Node) for number in numbers):
        raiser.bind(op, raiser.emit(function, *numbers))
    else:
        raiser.bind(op, function(*numbers))


HANDLERS: HandlerTable = {f"torch.{name}": _compute for name in FUNCTIONS}
