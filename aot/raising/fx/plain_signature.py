"""The signature of a function without one, from its types."""

from __future__ import annotations

import torch
from iree.compiler.ir import FunctionType, Operation, Type, TypeAttr

from pelton.runtime.call import sizes
from pelton.runtime.call.dtypes import dtype_of
from pelton.runtime.call.signature import Leaf, Parameter, ScalarSpec, Signature, TensorSpec

from ...spec.errors import UnsupportedOpError
from .types import number_dtype, tensor_type


def plain_signature(name: str, op: Operation) -> Signature:
    """Return the signature of a function from its types; arguments are called `arg0`, `arg1`, ….

    Args:
        name: The function's name.
        op: Its operation.

    Raises:
        UnsupportedOpError: A type has no form in torch.
    """
    type_ = FunctionType(TypeAttr(op.attributes["function_type"]).value)
    inputs = [_leaf(given, f"arg{i}_dim") for i, given in enumerate(type_.inputs)]
    results = [_leaf(returned, "") for returned in type_.results]
    names = [
        size
        for leaf in inputs
        for size in (leaf.shape if isinstance(leaf, TensorSpec) else ())
        if isinstance(size, str)
    ]
    several = ["tuple", list(range(len(results)))] if results else None
    return Signature(
        name,
        tuple(Parameter(f"arg{i}", "POSITIONAL_OR_KEYWORD", i) for i in range(len(inputs))),
        tuple(inputs),
        0 if len(results) == 1 else several,
        tuple(results),
        tuple(sizes.Dim(size) for size in names),
    )


def _leaf(type_: Type, prefix: str) -> Leaf:
    tensor = tensor_type(type_)
    dtype = number_dtype(type_) if tensor is None else tensor.dtype
    if dtype is None:
        raise UnsupportedOpError(f"a value of type {type_} has no form in torch")
    if tensor is None:
        integer = "bool" if dtype is torch.bool else "int"
        return ScalarSpec("float" if dtype.is_floating_point else integer)
    row = dtype_of(dtype)
    assert row is not None
    shape = [
        (f"{prefix}{axis}" if prefix else sizes.UNKNOWN) if size is None else size
        for axis, size in enumerate(tensor.shape)
    ]
    return TensorSpec(row, tuple(shape))
