"""Symbolic integers: arithmetic on sizes by the scalar operators of the torch dialect."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from .inserter import Inserter
from .symfloat_quotients import lowest_value, quotient_of

aten, prim = torch.ops.aten, torch.ops.prim

_symbolic: Any = torch  # whose functions of symbolic numbers have no types

_Number = Any  # a node, or a Python number


def _value(number: _Number) -> Any:
    return number.meta["val"] if isinstance(number, Node) else number


def _is_float(number: _Number) -> bool:
    return isinstance(_value(number), (float, torch.SymFloat))


def _is_bool(number: _Number) -> bool:
    return isinstance(_value(number), (bool, torch.SymBool))


def _to_float(inserter: Inserter, number: _Number) -> _Number:
    if _is_float(number):
        return number
    if not isinstance(number, Node):
        return float(number)
    return inserter.call(aten.Float.Scalar, number, value=_symbolic.sym_float(number.meta["val"]))


def _to_int(inserter: Inserter, number: _Number) -> _Number:
    """Return a bool as 0 or 1."""
    if not _is_bool(number):
        return number
    if not isinstance(number, Node):
        return int(number)
    return inserter.call(aten.Int.bool, number, value=_symbolic.sym_ite(number.meta["val"], 1, 0))


def _sym_float(inserter: Inserter, x: _Number) -> None:
    inserter.become(aten.Float.Scalar, x)


def _truncate(inserter: Inserter, x: _Number) -> None:
    """Rewrite int(x) to floor(x), for x that is not negative."""
    if not _is_float(x):
        inserter.become(aten.add.int, _to_int(inserter, x), 0)
    elif isinstance(x, Node) and lowest_value(x) >= 0:
        _floor(inserter, x)


def _floor(inserter: Inserter, x: _Number) -> None:
    if not _is_float(x):
        inserter.become(aten.add.int, x, 0)
        return
    quotient = quotient_of(x, np.floor)
    if quotient is not None:
        dividend = _times(inserter, quotient.dividend, quotient.factor)
        inserter.become(aten.floordiv.int, dividend, quotient.divisor)


def _ceil(inserter: Inserter, x: _Number) -> None:
    """Rewrite ceil(x) to -floor(-x)."""
    if not _is_float(x):
        inserter.become(aten.add.int, x, 0)
        return
    quotient = quotient_of(x, np.ceil)
    if quotient is not None:
        dividend = _times(inserter, quotient.dividend, -quotient.factor)
        value = -_value(inserter.anchor)
        floored = inserter.call(aten.floordiv.int, dividend, quotient.divisor, value=value)
        inserter.become(aten.neg.int, floored)


def _times(inserter: Inserter, x: Node, factor: int) -> Node:
    return inserter.call(aten.mul.int, x, factor, value=_value(x) * factor)


def _extreme(of_ints: Any) -> Callable[..., None]:
    def rewrite(inserter: Inserter, x: _Number, y: _Number) -> None:
        if not (_is_float(x) or _is_float(y)):
            inserter.become(of_ints, x, y)

    return rewrite


def _if_then_else(inserter: Inserter, chosen: _Number, x: _Number, y: _Number) -> None:
    """Rewrite a choice of integers to y + chosen * (x - y)."""
    if _is_float(x) or _is_float(y):
        return
    step = inserter.call(aten.sub.int, x, y, value=_value(x) - _value(y))
    factor = _to_int(inserter, chosen)
    product = inserter.call(aten.mul.int, step, factor, value=_value(step) * _value(factor))
    inserter.become(aten.add.int, product, y)


def _not(inserter: Inserter, x: _Number) -> None:
    inserter.become(aten.eq.int, _to_int(inserter, x), 0)


def _mod(inserter: Inserter, x: _Number, y: _Number) -> None:
    if not (_is_float(x) or _is_float(y)):
        inserter.become(aten.remainder.int, x, y)


def _true_divide(inserter: Inserter, x: _Number, y: _Number) -> None:
    if _is_float(x) or _is_float(y):
        inserter.become(aten.div.float, _to_float(inserter, x), _to_float(inserter, y))
    else:
        inserter.become(aten.div.int, x, y)


def _multiply(inserter: Inserter, x: _Number, y: _Number) -> None:
    if _is_float(x) or _is_float(y):
        inserter.become(aten.mul.float, _to_float(inserter, x), _to_float(inserter, y))


def _add(inserter: Inserter, x: _Number, y: _Number) -> None:
    if _is_float(x) or _is_float(y):
        inserter.become(aten.add.float, _to_float(inserter, x), _to_float(inserter, y))


def _subtract(inserter: Inserter, x: _Number, y: _Number) -> None:
    if _is_float(x) or _is_float(y):
        inserter.become(aten.sub.float, _to_float(inserter, x), _to_float(inserter, y))


def _power(inserter: Inserter, x: _Number, exponent: _Number) -> None:
    """Rewrite a power by a positive integer to repeated multiplication."""
    if _is_float(x) or not isinstance(exponent, int) or exponent < 1:
        return
    product = x
    for _ in range(exponent - 1):
        product = inserter.call(aten.mul.int, product, x, value=_value(product) * _value(x))
    inserter.become(aten.add.int, product, 0)


def _sum(inserter: Inserter, terms: list[_Number]) -> None:
    total: _Number = 0
    for term in terms:
        total = inserter.call(aten.add.int, total, term, value=_value(total) + _value(term))
    inserter.become(aten.add.int, total, 0)


def _logical(overload: Any) -> Callable[..., None]:
    def rewrite(inserter: Inserter, x: _Number, y: _Number) -> None:
        if _is_bool(x) and _is_bool(y):
            inserter.become(overload, x, y)

    return rewrite


_RULES: dict[Any, Callable[..., None]] = {
    torch.sym_float: _sym_float,
    torch.sym_int: _truncate,
    math.trunc: _truncate,
    math.ceil: _ceil,
    math.floor: _floor,
    torch.sym_max: _extreme(prim.max.int),
    torch.sym_min: _extreme(prim.min.int),
    torch.sym_ite: _if_then_else,
    torch.sym_not: _not,
    torch.sym_sum: _sum,
    operator.mod: _mod,
    operator.truediv: _true_divide,
    operator.mul: _multiply,
    operator.add: _add,
    operator.sub: _subtract,
    operator.pow: _power,
    operator.and_: _logical(aten.__and__.bool),
    operator.or_: _logical(aten.__or__.bool),
}

TARGETS = tuple(_RULES)


def rewrite_number(inserter: Inserter) -> None:
    """Rewrite a call on symbolic numbers that the importer lacks or imports wrongly."""
    anchor = inserter.anchor
    _RULES[anchor.target](inserter, *anchor.args, **anchor.kwargs)
