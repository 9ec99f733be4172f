"""Calls of torch functions and modules with traced values: arguments, capture and the call."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from pelton.runtime.call import pytrees

from ...capture.arguments import Arguments, TracedInput, flatten_arguments
from ...spec.errors import ExportError
from ..globals.live_globals import IrGlobalTensor, plain_tree
from ..values.arithmetic import is_float
from ..values.conversions import tensor_of
from ..values.scalars import IrScalar
from ..values.services import TraceServices
from ..values.tensors import IrTensor
from .captured import Callee, ProgramTable
from .program_calls import emit_program_call

_EXAMPLE_SIZES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83)
"""Example sizes for dynamic dimensions; a call uses one that no static dimension of it has."""


def call_function(
    trace: TraceServices,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Emit a call of a torch function with traced values among its arguments.

    Args:
        trace: The procedure that calls.
        function: The function.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Raises:
        ProcedureTraceError: torch refuses the arguments.
    """
    name = getattr(function, "__name__", "function").strip("_").replace("<lambda>", "lambda")
    is_operator = getattr(operator, getattr(function, "__name__", ""), None) is function
    return call(trace, Callee(function, name, scalars_as_tensors=is_operator), args, kwargs)


def call(
    trace: TraceServices, callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Emit a call of a torch function or module; return its result with traced values in it.

    Args:
        trace: The procedure that calls.
        callee: The function or module.
        args: Positional arguments: traced values, tensors, constants and containers.
        kwargs: Keyword arguments of the same kinds.

    Raises:
        ExportError: The callee cannot be captured with such arguments.
    """
    try:
        arguments = _flatten_arguments(trace, callee, args, kwargs)
        found = ProgramTable.of(trace.module_builder).find(callee, arguments)
    except ExportError as error:
        if error.location is not None:
            raise
        trace.fail(f"calling {callee.name}: {error}")
    return emit_program_call(trace, found, arguments)


def _flatten_arguments(
    trace: TraceServices, callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Arguments:
    """Bind the arguments of a call, with tensors and traced values as inputs."""
    given = plain_tree([list(args), dict(kwargs)])
    tree, leaves = pytrees.describe(given, _is_leaf)
    tensors = {
        index: tensor_of(trace, leaf, "an argument")
        for index, leaf in enumerate(leaves)
        if isinstance(leaf, (IrTensor, torch.Tensor)) or _passed_as_tensor(leaf, callee)
    }
    size = _example_size(list(tensors.values()))
    inputs = [_traced_input(tensors.get(index, leaf), size) for index, leaf in enumerate(leaves)]
    args, kwargs = pytrees.unflatten(tree, inputs)
    arguments = flatten_arguments(_callable(callee.function), args, kwargs, callee.dynamic_shapes)
    return _tie_globals(arguments)


def _tie_globals(arguments: Arguments) -> Arguments:
    """Pass a global that is given several times as one input, so that tied weights stay tied."""
    first: dict[str, int] = {}
    inputs = []
    for leaf in arguments.inputs:
        value = arguments.leaves[leaf.index].value
        symbol = value.symbol_name if isinstance(value, IrGlobalTensor) else str(id(leaf))
        known = first.setdefault(symbol, leaf.index)
        if known == leaf.index:
            inputs.append(leaf)
        else:
            arguments.ties[leaf.index] = known
    return dataclasses.replace(arguments, inputs=inputs)


def _callable(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.forward if isinstance(function, torch.nn.Module) else function


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (IrTensor, IrScalar, torch.Tensor))


def _passed_as_tensor(value: Any, callee: Callee) -> bool:
    if not isinstance(value, IrScalar):
        return False
    return callee.scalars_as_tensors or is_float(value.kind) or value.kind == "i1"


def _example_size(tensors: Sequence[IrTensor]) -> int:
    static = {size for tensor in tensors for size in tensor.type_shape}
    return next((size for size in _EXAMPLE_SIZES if size not in static), 97)


def _traced_input(value: Any, size: int) -> Any:
    if isinstance(value, IrScalar):
        return TracedInput(value, size=size)
    if not isinstance(value, IrTensor):
        return value
    shape = tuple(None if extent < 0 else extent for extent in value.type_shape)
    return TracedInput(value, value.dtype, shape, size)
