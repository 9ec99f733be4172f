"""Constants that IREE's compiler does not see as such while it reads the torch dialect.

Its folders of that dialect compute with constants of equal elements as if numbers were unsigned:
`-1 * torch.full((3,), 2.5)` gives 4.6e19, and the sign of 2.5 is -1. So these constants become
globals, which the compiler puts back once the program has left the dialect, where arithmetic on
constants is right. Operations of other dialects that make constants would not do: those are turned
into literals of the torch dialect, and a sum over a `linalg.fill` is taken for its element.
"""

from __future__ import annotations

from iree.compiler.ir import (
    Attribute,
    DenseElementsAttr,
    FlatSymbolRefAttr,
    FloatAttr,
    InsertionPoint,
    IntegerAttr,
    Operation,
    RankedTensorType,
    StringAttr,
    Type,
    TypeAttr,
    UnitAttr,
)

from ....ir.module import operations_within
from .emission import FLOATS, number_of, tensor_type

_LITERAL = "torch.vtensor.literal"
_FILLED = {
    "torch.aten.ones": 1,
    "torch.aten.zeros": 0,
    "torch.aten.ones_like": 1,
    "torch.aten.zeros_like": 0,
    "torch.aten.new_ones": 1,
    "torch.aten.new_zeros": 0,
}
"""Operations that fill a tensor with a number of their own."""

_FILLED_WITH = {"torch.aten.full": 1, "torch.aten.full_like": 1, "torch.aten.new_full": 2}
"""Operations that fill a tensor with an operand, and its position."""

_MOST_ELEMENTS = 64
"""The folders take no more elements, unless all are equal."""


def outline_splat_constants(module_op: Operation) -> None:
    """Turn the constants of a module, in the torch dialect, into globals."""
    names: dict[Attribute, str] = {}
    for op in operations_within(module_op):
        numbers = _numbers(op)
        if numbers is None:
            continue
        if numbers not in names:
            names[numbers] = f"__constant_of_pelton_{len(names)}"
            _declare(module_op, names[numbers], numbers)
        _load(op, names[numbers], numbers.type)


def _numbers(op: Operation) -> DenseElementsAttr | None:
    """Return what a constant that the folders take holds."""
    if op.name != _LITERAL and op.name not in _FILLED and op.name not in _FILLED_WITH:
        return None
    kind = _outer_type(op.result.type)
    if kind is None:
        return None
    if op.name == _LITERAL:
        value = op.attributes["value"]
        if not isinstance(value, DenseElementsAttr):
            return None
        if not value.is_splat and len(value) > _MOST_ELEMENTS:
            return None
        shown, _, _ = str(value).rpartition(" : ")
        return DenseElementsAttr(Attribute.parse(f"{shown} : {kind}", op.context))
    if op.name in _FILLED_WITH:
        number = number_of(op.operands[_FILLED_WITH[op.name]])
    else:
        number = _FILLED[op.name]
    return None if number is None else _splat(op, kind, number)


def _splat(op: Operation, kind: RankedTensorType, number: float) -> DenseElementsAttr:
    element = kind.element_type
    with op.context, op.location:
        if str(element) in FLOATS:
            return DenseElementsAttr.get_splat(kind, FloatAttr.get(element, float(number)))
        whole = bool(number) if str(element) == "i1" else int(number)
        return DenseElementsAttr.get_splat(kind, IntegerAttr.get(element, whole))


def _outer_type(type_: Type) -> RankedTensorType | None:
    """Return the type that a tensor has outside of the torch dialect; None where sizes vary."""
    sizes, element = tensor_type(type_)
    if not element or None in sizes or "complex" in element:
        return None
    element = element.removeprefix("s").removeprefix("u")
    shown = "".join(f"{size}x" for size in sizes)
    return RankedTensorType(Type.parse(f"tensor<{shown}{element}>", type_.context))


def _declare(module_op: Operation, name: str, numbers: DenseElementsAttr) -> None:
    (block,) = module_op.regions[0].blocks
    with module_op.context, module_op.location, InsertionPoint.at_block_begin(block):
        Operation.create(
            "util.global",
            attributes={
                "sym_name": StringAttr.get(name),
                "sym_visibility": StringAttr.get("private"),
                "type": TypeAttr.get(numbers.type),
                "initial_value": numbers,
            },
        )


def _load(op: Operation, name: str, kind: Type) -> None:
    with op.context, op.location, InsertionPoint(op):
        attributes = {"global": FlatSymbolRefAttr.get(name), "is_immutable": UnitAttr.get()}
        loaded = Operation.create("util.global.load", results=[kind], attributes=attributes).result
        inside = Operation.create(
            "torch_c.from_builtin_tensor", results=[op.result.type], operands=[loaded]
        ).result
    op.result.replace_all_uses_with(inside)
    op.erase()
