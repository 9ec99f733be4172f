"""Conversions to traced values: torch tensors, numbers and scalars as tensors, tensors as sizes."""

from __future__ import annotations

from typing import Any

import torch
from iree.compiler.ir import Value

from ...ir.builder import GlobalAttributes, TensorGlobal
from ...ir.elements import shape_of
from .arithmetic import is_number
from .scalars import IrScalar, index_scalar
from .services import TensorType, TraceServices
from .sizes import DYNAMIC
from .tensor_ops import emit_cast, emit_global_load, emit_rank0
from .tensors import IrImmediateTensor, IrTensor


def index_of(trace: TraceServices, value: Any) -> IrScalar:
    """Return an integer, or a tensor of one, as a traced scalar of type index.

    Raises:
        ProcedureTraceError: `value` is no integer.
    """
    return index_scalar(trace, value.item() if isinstance(value, IrTensor) else value)


def tensor_of(trace: TraceServices, value: Any, where: str) -> IrTensor:
    """Return a traced tensor, a torch tensor or a traced scalar as a traced tensor.

    Args:
        trace: The procedure.
        value: The value; a torch tensor becomes a global of the module.
        where: The use of the tensor, for the message.

    Raises:
        ProcedureTraceError: `value` is no tensor.
    """
    if isinstance(value, IrTensor):
        return value
    if isinstance(value, torch.Tensor):
        return constant_of(trace, value)
    if isinstance(value, IrScalar):
        return emit_rank0(trace, value)
    hint = "; fill a tensor with `tensor[...] = number`" if is_number(value) else ""
    trace.fail(f"{where} must be a tensor, got {value!r}{hint}")


def constant_of(trace: TraceServices, tensor: torch.Tensor) -> IrTensor:
    """Return a torch tensor as a traced one: a load of its global, made at its first use."""
    known = trace.module_builder.globals.get(id(tensor))
    if known is None:
        shape = "_".join(map(str, shape_of(tensor)))
        name = f"__auto.constant_{shape}_{tensor.dtype}"
        known = trace.module_builder.tensor_global(tensor, name, GlobalAttributes())
    return _load(trace, known, tensor.dtype)


def _load(trace: TraceServices, source: TensorGlobal, dtype: torch.dtype) -> IrTensor:
    loaded = IrImmediateTensor(emit_global_load(trace, source), dtype)
    loaded.may_alias = frozenset({source.symbol})
    return loaded


def tensor_of_type(trace: TraceServices, value: Any, expected: TensorType, where: str) -> Value:
    """Return a tensor as a value of a type; static and dynamic sizes may meet.

    Args:
        trace: The procedure.
        value: A traced tensor, a torch tensor or a traced scalar.
        expected: A traced tensor or an abstract tensor of the type.
        where: The use of the value, for messages.

    Raises:
        ProcedureTraceError: The element type, the rank or a size differs.
    """
    given, shape = tensor_of(trace, value, where), expected.type_shape
    fits = given.dtype == expected.dtype and given.rank == len(shape)
    fits = fits and all(
        DYNAMIC in (a, b) or a == b for a, b in zip(given.type_shape, shape, strict=True)
    )
    if not fits:
        trace.fail(f"{where} expects {expected}, got {given}")
    return emit_cast(trace, given, shape)
