"""Emission of operations of the torch dialect beside existing ones."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler.ir import (
    BoolAttr,
    FloatAttr,
    InsertionPoint,
    IntegerAttr,
    Operation,
    OpResult,
    Type,
    Value,
)

from ....ir.torch_ops import TorchEmitter
from ....ir.torch_types import TensorType

FLOATS = ("f16", "bf16", "f32", "f64")
"""Element types of real numbers."""

_NUMBERS_OF_TYPES = {"si32": 3, "si64": 4, "f16": 5, "f32": 6, "f64": 7, "bf16": 15}
"""torch's numbers of element types (`c10/core/ScalarType.h`)."""

Size = int | None
"""A size of a tensor; None: it varies."""


def tensor_type(type_: Type) -> tuple[list[Size], str]:
    """Return sizes and element type of a tensor type; no sizes of a type without."""
    text = str(type_)
    found = TensorType.parse_torch(text) if text.startswith("!torch.vtensor<") else None
    return ([], "") if found is None else ([*found.shape], found.element)


def with_element(type_: Type, element: str) -> str:
    """Return the type of tensors of the same sizes whose elements have another type."""
    sizes, _ = tensor_type(type_)
    return TensorType(tuple(sizes), element).torch()


def number_of(value: Value) -> float | None:
    """Return the number that a constant of the torch dialect is; None where a value is none."""
    if not isinstance(value, OpResult):
        return None
    owner = value.owner
    if owner.name == "torch.constant.bool":
        return int(BoolAttr(owner.attributes["value"]).value)
    if owner.name == "torch.constant.int":
        return int(IntegerAttr(owner.attributes["value"]).value)
    if owner.name == "torch.constant.float":
        return float(FloatAttr(owner.attributes["value"]).value)
    return None


class Emitter(TorchEmitter):
    """Creates operations of the torch dialect next to an operation, at its location.

    Args:
        op: The operation.
        after: Whether they come after it, rather than before.
    """

    def __init__(self, op: Operation, *, after: bool = False) -> None:
        super().__init__(InsertionPoint.after(op) if after else InsertionPoint(op), op.location)

    def tensor(self, name: str, sizes: Sequence[Size], *operands: Value) -> Value:
        """Make an operation whose result is a tensor of float32."""
        return self.make(name, TensorType(tuple(sizes), "f32").torch(), *operands)

    def like(self, name: str, tensor: Value, *operands: Value) -> Value:
        """Make an operation of a tensor whose result has the type of that tensor."""
        return self.make(name, str(tensor.type), tensor, *operands)

    def sum(self, left: Value, right: Value) -> Value:
        """Make the sum of two tensors of one type."""
        return self.like("aten.add.Tensor", left, right, self.number(1))

    def difference(self, left: Value, right: Value) -> Value:
        """Make the difference of two tensors of one type."""
        return self.like("aten.sub.Tensor", left, right, self.number(1))

    def product(self, left: Value, right: Value) -> Value:
        """Make the product of two tensors of one type."""
        return self.like("aten.mul.Tensor", left, right)

    def scaled(self, tensor: Value, factor: float) -> Value:
        """Make the product of a tensor and a number."""
        return self.like("aten.mul.Scalar", tensor, self.real(factor))

    def shifted(self, tensor: Value, summand: float) -> Value:
        """Make the sum of a tensor and a number."""
        return self.like("aten.add.Scalar", tensor, self.real(summand), self.number(1))

    def converted(self, tensor: Value, element: str) -> Value:
        """Return a tensor with elements of a type; itself where it has such."""
        if tensor_type(tensor.type)[1] == element:
            return tensor
        kind, number = with_element(tensor.type, element), self.number(_NUMBERS_OF_TYPES[element])
        return self.make("prims.convert_element_type", kind, tensor, number)

    def numbers(self, *values: int) -> Value:
        """Make a list of constants."""
        return self.integers([self.number(value) for value in values])
