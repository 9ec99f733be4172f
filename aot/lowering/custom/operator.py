"""Custom operators: their schema, shapes and body, in one table by name.

torch has one operator table for the process; this is the table of the bodies that belong to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...compat.operators import FunctionSchema
from ...spec.errors import ExportError, SourceLocation
from .shapes import ShapePattern

Body: TypeAlias = "str | Callable[..., Any]"
"""The text of a function's body in MLIR, or a function that emits it; see `custom_op`."""

_REGISTERED: dict[str, CustomOp] = {}


@dataclass(frozen=True)
class CustomOp:
    """A custom operator that has a body.

    Attributes:
        name: Its name, such as `demo::gated`.
        schema: torch's schema of it.
        body: What it computes.
        shapes: How the shapes of its tensors relate; None: not stated.
        location: The user's line that registered the body.
    """

    name: str
    schema: FunctionSchema
    body: Body
    shapes: ShapePattern | None
    location: SourceLocation | None

    def error(self, problem: str) -> ExportError:
        """Return the error for something wrong with the body."""
        return ExportError(f"custom operator {self.name}: {problem}", location=self.location)


def add(op: CustomOp) -> None:
    """Add an operator to the table, in place of one of its name."""
    _REGISTERED[key_of(op.schema)] = op


def find(name: str) -> CustomOp | None:
    """Return the custom operator of a name, such as `demo.gated`, or None."""
    return _REGISTERED.get(name)


def key_of(schema: FunctionSchema) -> str:
    """Return the name by which `find` knows an operator."""
    overload = f".{schema.overload_name}" if schema.overload_name else ""
    return schema.name.replace("::", ".") + overload


def tensor_arguments(schema: FunctionSchema) -> list[str]:
    """Return the names of the arguments that are tensors, or may be."""
    return [argument.name for argument in schema.arguments if _is_tensor(argument.type)]


def bind_arguments(
    schema: FunctionSchema, args: Sequence[Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the value of each argument of a call by name.

    Args:
        schema: The operator's schema, which has the defaults.
        args: The positional arguments.
        kwargs: The keyword arguments.
    """
    given = dict(zip((argument.name for argument in schema.arguments), args, strict=False))
    defaults = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
    return {**defaults, **given, **kwargs}


def _is_tensor(type_: Any) -> bool:
    return str(type_) in ("Tensor", "Optional[Tensor]")
