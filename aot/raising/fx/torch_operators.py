"""Operators of the torch dialect on tensors: each is torch's operator of the same name."""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from iree.compiler.extras import fx_importer
from iree.compiler.ir import Operation, StringAttr
from torch.fx import Node

from ...compat.operators import OpOverload, schema_of
from . import effects
from .raiser import HandlerTable, Raiser
from .scope import dtype_of
from .types import tensor_type

aten = torch.ops.aten

_CODES: dict[str, dict[int, Any]] = {
    "ScalarType": {code: dtype for dtype, code in fx_importer.TORCH_DTYPE_TO_INT.items()},
    "MemoryFormat": {code: f for f, code in fx_importer.TORCH_MEMORY_FORMAT_TO_INT.items()},
    "Layout": {code: layout for layout, code in fx_importer.TORCH_LAYOUT_TO_INT.items()},
}
"""What the integers stand for that the dialect has for torch's enumerations."""


_WITH_TENSORS: dict[OpOverload, OpOverload] = {
    getattr(aten, name).Scalar: getattr(aten, name).Tensor for name in ("add", "div", "mul", "sub")
}


_RAISED_AS: dict[OpOverload, OpOverload] = {
    aten.view.default: aten.reshape.default,
    torch.ops.prims.squeeze.default: aten.squeeze.dims,
}
"""Operators that are raised as others: tensors of modules have no strides, and those of torch may
be others here than where a view was traced, as attention lays its result out as the kernel that
computes it likes; a primitive that gives a view cannot be traced again."""


@functools.lru_cache(maxsize=2048)
def overload_of(name: str) -> OpOverload | None:
    """Return torch's operator of a name in the torch dialect; None where there is none.

    Example:
        >>> str(overload_of("torch.aten.add.Tensor")), overload_of("torch.aten.nothing")
        ('aten.add.Tensor', None)
    """
    namespace, _, rest = name.removeprefix("torch.").partition(".")
    base, _, overload = rest.partition(".")
    # TorchScript's twin of an operator that takes a list of optional tensors.
    overload = overload.removesuffix("hacked_twin").removesuffix("_")
    packet = getattr(getattr(torch.ops, namespace, None), base, None)
    found = getattr(packet, overload or "default", None)
    return found if isinstance(found, OpOverload) else None


def name_of(op: Operation) -> str:
    """Return what an operation is called: of a `torch.operator`, the operator."""
    if op.name == "torch.operator":
        return str(StringAttr(op.attributes["name"]).value)
    return str(op.name)


def raise_operator(raiser: Raiser, op: Operation) -> None:
    """Raise any operator that torch has under the same name."""
    overload = overload_of(name_of(op))
    assert overload is not None
    overload = _RAISED_AS.get(overload, overload)
    args: list[Any] = []
    keywords: dict[str, Any] = {}
    formals = schema_of(overload).arguments
    for value, formal in zip(raiser.values(op.operands), formals, strict=False):
        actual = _decoded(value, formal)
        if not formal.kwarg_only:
            args.append(actual)
        elif (
            isinstance(actual, Node)
            or not formal.has_default_value()
            or actual != formal.default_value
        ):
            keywords[formal.name] = actual
    if overload in _WITH_TENSORS and _is_symbolic(args[1]) and args[2:] in ([], [1]):
        _with_tensor(raiser, op, overload, args)
        return
    dtypes = [found.dtype if (found := tensor_type(r.type)) else None for r in op.results]
    single = dtypes[0] if len(dtypes) == 1 else None
    result = raiser.emit(overload, *args, dtype=single, keywords=keywords)
    if len(dtypes) == 1:
        raiser.bind(op, result)
    else:
        parts = enumerate(dtypes)
        items = [raiser.emit(operator.getitem, result, i, dtype=dtype) for i, dtype in parts]
        raiser.bind(op, *items)


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, Node) and dtype_of(value) is None


def _with_tensor(raiser: Raiser, op: Operation, overload: OpOverload, args: list[Any]) -> None:
    """Raise an operator whose number is known at run time only: ONNX has it as a tensor."""
    type_ = tensor_type(op.results[0].type)
    assert type_ is not None
    number = raiser.as_tensor(args[1], type_.dtype)
    raiser.bind(op, raiser.emit(_WITH_TENSORS[overload], args[0], number, dtype=type_.dtype))


def _decoded(value: Any, formal: torch.Argument) -> Any:
    if type(value) is not int:
        return value
    kind = str(getattr(formal, "real_type", formal.type))
    kind = kind.removeprefix("Optional[").rstrip("]?")
    return _CODES[kind][value] if kind in _CODES else value


def _size(raiser: Raiser, op: Operation) -> None:
    tensor, axis = raiser.values(op.operands)
    type_ = tensor_type(op.operands[0].type)
    static = type_.shape[axis] if type_ and isinstance(axis, int) else None
    raiser.bind(op, raiser.emit(aten.sym_size.int, tensor, axis) if static is None else static)


def _rank(raiser: Raiser, op: Operation) -> None:
    type_ = tensor_type(op.operands[0].type)
    assert type_ is not None, "a tensor without a rank"
    raiser.bind(op, len(type_.shape))


def _numel(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, raiser.emit(aten.sym_numel.default, raiser.value(op.operands[0])))


def _number_in(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, raiser.as_number(raiser.value(op.operands[0])))


def _truth(raiser: Raiser, op: Operation) -> None:
    """Keep a tensor of one bool: branches and loops take it as it is."""
    tensor = raiser.value(op.operands[0])
    if dtype_of(tensor) is not torch.bool:
        tensor = raiser.emit(aten.ne.Scalar, tensor, 0, dtype=torch.bool)
    raiser.bind(op, tensor)


def _attention(raiser: Raiser, op: Operation) -> None:
    """Raise attention with the four dimensions that other formats ask for."""
    query = tensor_type(op.operands[0].type)
    missing = 4 - len(query.shape) if query else 0
    if missing <= 0:
        raise_operator(raiser, op)
        return
    *tensors, dropout, causal, scale, grouped = raiser.values(op.operands)
    dtype = dtype_of(tensors[0])
    for _ in range(missing):
        tensors = [
            tensor if tensor is None else raiser.emit(aten.unsqueeze.default, tensor, 0)
            for tensor in tensors
        ]
    options = {"scale": scale, "enable_gqa": grouped}
    result = raiser.emit(
        aten.scaled_dot_product_attention.default, *tensors, dropout, causal, keywords=options
    )
    for _ in range(missing):
        result = raiser.emit(aten.squeeze.dim, result, 0, dtype=dtype)
    raiser.bind(op, result)


def _assert_scalar(raiser: Raiser, op: Operation) -> None:
    condition, message = raiser.values(op.operands)
    raiser.emit_effect(effects.require, condition, message)


HANDLERS: HandlerTable = {
    "torch.aten.size.int": _size,
    "torch.aten.sym_size.int": _size,
    "torch.aten.dim": _rank,
    "torch.aten.numel": _numel,
    "torch.aten.sym_numel": _numel,
    "torch.aten.scaled_dot_product_attention": _attention,
    "torch.aten._assert_scalar": _assert_scalar,
    "torch.aten._assert_tensor_metadata": lambda raiser, op: None,
    "torch.aten.Bool.Tensor": _truth,
    **{
        f"torch.aten.{name}": _number_in
        for name in (
            "Int.Tensor", "Float.Tensor", "IntImplicit", "FloatImplicit", "ScalarImplicit",
            "item", "_local_scalar_dense",
        )
    },
}  # fmt: skip
"""The operators whose form in the dialect is not that of torch."""
