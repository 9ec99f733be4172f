"""Operators of torch: their classes, schemas and custom definitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import torch
from torch._library.custom_ops import CustomOpDef
from torch._ops import HigherOrderOperator, OperatorBase, OpOverload, OpOverloadPacket

__all__ = [
    "CustomOpDef",
    "FunctionSchema",
    "HigherOrderOperator",
    "OpOverload",
    "OpOverloadPacket",
    "OperatorBase",
    "foreach_operators",
    "overload_of",
    "parse_schema",
    "schema_of",
]

FunctionSchema: TypeAlias = torch._C.FunctionSchema
"""The schema of an operator: its name, arguments and results."""


def schema_of(operator: OpOverload) -> FunctionSchema:
    """Return the schema of an operator.

    Example:
        >>> schema_of(torch.ops.aten.relu.default).name
        'aten::relu'
    """
    return operator._schema


def parse_schema(text: str) -> FunctionSchema:
    """Return the schema that a text in torch's form states.

    Raises:
        RuntimeError: The text is not in torch's form.

    Example:
        >>> [argument.name for argument in parse_schema("demo::f(Tensor x) -> Tensor").arguments]
        ['x']
    """
    return torch._C.parse_schema(text)


def overload_of(definition: CustomOpDef) -> OpOverload:
    """Return the operator that `torch.library.custom_op` registered for a definition."""
    return definition._opoverload


def foreach_operators() -> Iterator[tuple[str, OpOverload]]:
    """Yield the operators on lists of tensors that change none, each with its name for one tensor.

    Example:
        >>> [str(operator) for name, operator in foreach_operators() if name == "sqrt"]
        ['aten._foreach_sqrt.default']
    """
    prefix = "_foreach_"
    names = {
        name.removeprefix(prefix).rstrip("_") for name in dir(torch) if name.startswith(prefix)
    }
    for name in sorted(names):
        packet = getattr(torch.ops.aten, prefix + name)
        for overload in packet.overloads():
            operator = getattr(packet, overload)
            if not schema_of(operator).is_mutable:
                yield name, operator
