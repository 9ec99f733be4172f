"""Emitter of operations of the torch dialect: constants, lists and operators of one result."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler.ir import (
    Attribute,
    FloatAttr,
    InsertionPoint,
    IntegerAttr,
    IntegerType,
    Location,
    Operation,
    Type,
    Value,
)


class TorchEmitter:
    """Creates operations of the torch dialect at an insertion point.

    Args:
        point: Where the operations go.
        location: Their source location.
    """

    def __init__(self, point: InsertionPoint, location: Location) -> None:
        self._point = point
        self._location = location

    def make(
        self, name: str, result: str | Type, *operands: Value, **attributes: Attribute
    ) -> Value:
        """Create an operation of one result; return the result.

        Args:
            name: The operation's name without the dialect, such as `aten.add.Tensor`.
            result: The type of the result, or its text.
            operands: The operands.
            attributes: The attributes by name.
        """
        with self._location.context, self._point, self._location:
            return Operation.create(
                f"torch.{name}",
                results=[Type.parse(result) if isinstance(result, str) else result],
                operands=list(operands),
                attributes=attributes,
            ).result

    def real(self, value: float) -> Value:
        """Create a constant of type `!torch.float`."""
        with self._location.context, self._location:
            attribute = FloatAttr.get_f64(value)
        return self.make("constant.float", "!torch.float", value=attribute)

    def number(self, value: int) -> Value:
        """Create a constant of type `!torch.int`."""
        return self.make("constant.int", "!torch.int", value=self._integer(64, value))

    def boolean(self, value: bool) -> Value:
        """Create a constant of type `!torch.bool`."""
        return self.make("constant.bool", "!torch.bool", value=self._integer(1, int(value)))

    def none(self) -> Value:
        """Create the constant None."""
        return self.make("constant.none", "!torch.none")

    def integers(self, values: Sequence[Value]) -> Value:
        """Create a list of values of type `!torch.int`."""
        return self.make("prim.ListConstruct", "!torch.list<int>", *values)

    def _integer(self, bits: int, value: int) -> Attribute:
        with self._location.context:
            return IntegerAttr.get(IntegerType.get_signless(bits), value)
