"""Guards of a traced program: relations between sizes, checked at each call.

torch.export resolves comparisons of sizes for its examples and notes them as guards: that a size is
a multiple of another, that a branch was taken. For other sizes the program would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from pelton.runtime.call.sizes import UNKNOWN, Constraint, names_in

from ..compat.symbolic import bound_sympy
from .diagnosis import asks_of_one, fails_at_one
from .dynamic_shapes import size_of

_RELATIONS: dict[type, str] = {
    sympy.Eq: "==",
    sympy.Ne: "!=",
    sympy.Lt: "<",
    sympy.Le: "<=",
    sympy.Gt: ">",
    sympy.Ge: ">=",
}


def constraints_of(
    program: ExportedProgram, names: Mapping[str, str], *, oblivious: bool
) -> tuple[Constraint, ...]:
    """Return the constraints of a program's sizes.

    Args:
        program: What torch.export made.
        names: Dimension names by symbol.
        oblivious: Whether it was traced without regard to sizes of 0 and 1. Otherwise guards that
            tell a size from 1 stand for memory layouts, and change no value.
    """
    found = []
    for guard in _guards(program):
        for relation in conjuncts(guard.expr):
            if not asks_of_one(guard) and _is_layout(relation, oblivious):
                continue
            constraint = _constraint(relation, names)
            if constraint is not None and not _is_certain(relation, program.range_constraints):
                found.append(constraint)
    return tuple(item for index, item in enumerate(found) if item not in found[:index])


def shape_env_of(program: ExportedProgram) -> Any:
    """Return torch's shape environment of a program; None where it has no tensors or sizes."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and getattr(value, "fake_mode", None) is not None:
            return value.fake_mode.shape_env  # type: ignore[attr-defined]
        if isinstance(value, torch.SymInt):
            return value.node.shape_env
    return None


def _guards(program: ExportedProgram) -> Iterable[Any]:
    environment = shape_env_of(program)
    return list(environment.guards) if environment is not None else []


def conjuncts(expression: Any) -> Iterable[Any]:
    """Return the relations that a guard joins by "and"."""
    return expression.args if isinstance(expression, sympy.And) else (expression,)


def _is_layout(relation: Any, oblivious: bool) -> bool:
    """Return whether a relation only excludes sizes of 1, whose memory layout differs."""
    if not oblivious:
        return not isinstance(relation, sympy.Eq)
    if not isinstance(relation, sympy.Ne):
        return False
    return any(fails_at_one(relation, symbol) for symbol in relation.free_symbols)


def _constraint(relation: Any, names: Mapping[str, str]) -> Constraint | None:
    spelled = next((text for cls, text in _RELATIONS.items() if type(relation) is cls), None)
    if spelled is None:
        return None
    left, right = size_of(relation.lhs, names), size_of(relation.rhs, names)
    unknown = UNKNOWN in names_in(left) | names_in(right)
    return None if unknown else Constraint(spelled, left, right)


def _is_certain(relation: Any, ranges: Mapping[Any, Any]) -> bool:
    bounds = bound_sympy(relation, dict(ranges))
    return bool(bounds.is_singleton()) and bounds.lower == sympy.true
