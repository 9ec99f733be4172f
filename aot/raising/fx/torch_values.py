"""Constants, lists and conversions of the torch dialect."""

from __future__ import annotations

import operator
from typing import Any

import torch
from iree.compiler.ir import Operation, StringAttr
from torch.fx import Node

from .constants import number
from .raiser import HandlerTable, Raiser
from .scope import dtype_of
from .types import is_python_number, tensor_type, value_dtype

aten = torch.ops.aten


def _number_constant(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, number(op, "value"))


def _text_constant(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, StringAttr(op.attributes["value"]).value)


def _none(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, None)


def _device(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, torch.device("cpu"))


def _literal(raiser: Raiser, op: Operation) -> None:
    type_ = tensor_type(op.results[0].type)
    assert type_ is not None
    shape = tuple(size for size in type_.shape if size is not None)
    tensor = raiser.source.constants.tensor(op, "value", shape, type_.dtype)
    raiser.bind(op, raiser.constant(tensor))


def _list(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, raiser.values(op.operands))


def _unpack(raiser: Raiser, op: Operation) -> None:
    listed = raiser.value(op.operands[0])
    items = [_item(raiser, listed, i, result) for i, result in enumerate(op.results)]
    raiser.bind(op, *items)


def _get_item(raiser: Raiser, op: Operation) -> None:
    listed, index = raiser.values(op.operands)
    raiser.bind(op, _item(raiser, listed, index, op.results[0]))


def _item(raiser: Raiser, listed: Any, index: int, result: Any) -> Any:
    if not isinstance(listed, Node):
        return listed[index]
    type_ = tensor_type(result.type)
    return raiser.emit(operator.getitem, listed, index, dtype=type_.dtype if type_ else None)


def _same(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, raiser.value(op.operands[0]))


def _reinterpret(raiser: Raiser, op: Operation) -> None:
    """Between the dialects: a type without a sign is whatever the value has."""
    value = raiser.value(op.operands[0])
    dtype = value_dtype(op.results[0].type)
    held = dtype_of(value)
    to_torch = op.name.endswith("from_builtin_tensor")
    if to_torch and held is not None and held != dtype and held.itemsize == dtype.itemsize:
        value = raiser.emit(aten.view.dtype, value, dtype, dtype=dtype)
    raiser.bind(op, value)


def _number_from(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, raiser.as_number(raiser.value(op.operands[0])))


def _number_to(raiser: Raiser, op: Operation) -> None:
    value, result = raiser.value(op.operands[0]), op.results[0]
    stays = is_python_number(result.type)
    raiser.bind(op, value if stays else raiser.as_tensor(value, value_dtype(result.type)))


def _tensor_from_number(raiser: Raiser, op: Operation) -> None:
    dtype = value_dtype(op.results[0].type)
    raiser.bind(op, raiser.as_tensor(raiser.value(op.operands[0]), dtype))


def _ignore(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, *[None] * len(op.results))


HANDLERS: HandlerTable = {
    **{f"torch.constant.{kind}": _number_constant for kind in ("int", "float", "bool", "number")},
    "torch.constant.str": _text_constant,
    "torch.constant.none": _none,
    "torch.constant.device": _device,
    "torch.vtensor.literal": _literal,
    "torch.prim.ListConstruct": _list,
    "torch.prim.TupleConstruct": _list,
    "torch.prim.ListUnpack": _unpack,
    "torch.prim.TupleUnpack": _unpack,
    "torch.aten.__getitem__.t": _get_item,
    "torch.prim.NumToTensor.Scalar": _tensor_from_number,
    "torch.symbolic_int": _ignore,
    "torch.bind_symbolic_shape": _ignore,
    "torch.copy.to_tensor": _same,
    "torch.copy.to_vtensor": _same,
    "torch.derefine": _same,
    "torch.tensor_static_info_cast": _same,
    "torch_c.from_builtin_tensor": _reinterpret,
    "torch_c.to_builtin_tensor": _reinterpret,
    **{f"torch_c.from_{kind}": _number_from for kind in ("i1", "i64", "f64")},
    **{f"torch_c.to_{kind}": _number_to for kind in ("i1", "i64", "f64")},
}
"""Operations that hold, group and convert values."""
