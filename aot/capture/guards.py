"""Guards of a traced program: relations between sizes, checked at each call.

torch.export resolves comparisons of sizes for its examples and notes them as guards: that a size is
a multiple of another, that a branch was taken. For other sizes the program would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from pelton.runtime.call.sizes import UNKNOWN, Constraint, names_in

from ..compat.guards import origins_of
from ..compat.interpreter import calling_frame
from ..compat.symbolic import bound_sympy
from ..spec.errors import DynamicShapeError, SourceLocation
from ..spec.locations import location_in_trace, user_location
from .diagnosis import asks_of_one, fails_at_one
from .dynamic_shapes import range_text, size_of

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
    found = constraints_with_origins(program, names, oblivious=oblivious)
    return tuple(constraint for constraint, _ in found)


@dataclass(frozen=True)
class GuardOrigin:
    """What a guard on sizes arises from.

    Attributes:
        operator: The operator that was traced or decomposed; empty for Python of the program.
        location: The line in the program that called it.
    """

    operator: str = ""
    location: SourceLocation | None = None


def origin_of_guard(operator: str, stack_trace: str) -> GuardOrigin:
    """Return the origin of the guard that arises now.

    Args:
        operator: The operator that is traced or decomposed.
        stack_trace: The stack trace of the operator that is decomposed; empty: it is traced.
    """
    return GuardOrigin(operator, location_in_trace(stack_trace) or user_location(calling_frame(1)))


def constraints_with_origins(
    program: ExportedProgram, names: Mapping[str, str], *, oblivious: bool
) -> list[tuple[Constraint, GuardOrigin]]:
    """Return the constraints of a program's sizes, each once, with what it arises from.

    Args:
        program: What torch.export made.
        names: Dimension names by symbol.
        oblivious: As for `constraints_of`.
    """
    found: list[tuple[Constraint, GuardOrigin]] = []
    origins = origins_of(shape_env_of(program))
    for number, guard in enumerate(_guards(program)):
        for relation in conjuncts(guard.expr):
            if not asks_of_one(guard) and _is_layout(relation, oblivious):
                continue
            constraint = _constraint(relation, names)
            if constraint is None or _is_certain(relation, program.range_constraints):
                continue
            if all(constraint != known for known, _ in found):
                found.append((constraint, origins.get(number, GuardOrigin())))
    return found


def origin_of_fixed_size(program: ExportedProgram, size: int) -> GuardOrigin:
    """Return what fixed a dynamic size of a program.

    Args:
        program: What torch.export made.
        size: The value that it was fixed to.
    """
    origins = origins_of(shape_env_of(program))
    for number, guard in enumerate(_guards(program)):
        if isinstance(guard.expr, sympy.Eq) and size in guard.expr.args and number in origins:
            found: GuardOrigin = origins[number]
            return found
    return GuardOrigin()


def refuse_narrowed_range(
    found: Iterable[tuple[Constraint, GuardOrigin]],
    asked: Mapping[str, tuple[int | None, int | None]],
) -> None:
    """Refuse a constraint that excludes an end of a range which was asked for.

    Args:
        found: Constraints, each with what it arises from.
        asked: The smallest and the largest size of each dimension; None where not given.

    Raises:
        DynamicShapeError: Names the dimension, the operator and its line.
    """
    for constraint, origin in found:
        named = names_in(constraint.left) | names_in(constraint.right)
        if len(named) != 1:
            continue  # a relation between sizes is checked at each call
        (name,) = named
        bounds = asked.get(name, (None, None))
        for end in bounds:
            if end is not None and not constraint.holds({name: end}):
                raise DynamicShapeError(
                    f"dimension {name!r} was asked as {range_text(bounds)}, but "
                    f"{origin.operator or 'the program'} needs {constraint}; ask for sizes that "
                    "fulfil it, or write the operation without that condition",
                    location=origin.location,
                )


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
