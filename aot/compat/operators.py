"""Operators of torch: their classes, schemas and custom definitions."""

from __future__ import annotations

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
