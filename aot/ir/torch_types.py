"""Types of the torch dialect and the builtin ones that they stand for, and values across."""

from __future__ import annotations

import re

from iree.compiler.ir import (
    Context,
    MLIRError,
    Operation,
    RankedTensorType,
    ShapedType,
    Type,
    Value,
)

from ..spec.errors import ExportError

_NUMBERS = {"!torch.bool": "i1", "!torch.int": "i64", "!torch.float": "f64"}
_TENSOR = re.compile(r"!torch\.v?tensor<\[([^\]]*)\],(.+)>")


class NativeTypeConverter:
    """Converts types and values between the torch dialect and MLIR's builtin types.

    Args:
        context: The MLIR context of the types.

    Example:
        >>> converter = NativeTypeConverter(Context())
        >>> print(converter.torch_type_to_native(converter.parse("!torch.vtensor<[2,?],si64>")))
        tensor<2x?xi64>
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def parse(self, text: str) -> Type:
        """Return the type that a text names.

        Raises:
            ExportError: There is no such type.
        """
        try:
            with self._context as context:
                context.load_all_available_dialects()
                return Type.parse(text)
        except (MLIRError, ValueError) as error:
            raise ExportError(f"{text!r} is no type: {error}") from error

    def torch_type_to_native(self, torch_type: Type, signless: bool = True) -> Type:
        """Return the builtin type that stands for a type of the torch dialect.

        Args:
            torch_type: A tensor of known shape and element type, or a number.
            signless: Give integers no sign, as nearly all builtin operations want them.

        Raises:
            ExportError: It is another type.
        """
        text = str(torch_type)
        number = _NUMBERS.get(text)
        if number is not None:
            return self.parse(number)
        tensor = _TENSOR.fullmatch(text)
        if tensor is None:
            raise ExportError(
                f"{text} has no builtin form; convert tensors of known shape and type, and numbers"
            )
        sizes = [size for size in tensor[1].split(",") if size]
        element = re.sub(r"^[su]i", "i", tensor[2]) if signless else tensor[2]
        return self.parse(f"tensor<{''.join(f'{size}x' for size in sizes)}{element}>")

    def materialize_native_to_torch(self, native_value: Value, torch_type: Type) -> Value:
        """Emit the conversion of a builtin value at the current place; return the torch value.

        Raises:
            ExportError: No value of such a type becomes the torch type.
        """
        native = self.torch_type_to_native(torch_type)
        if isinstance(native, RankedTensorType):
            native_value = _cast(native_value, native)
            return _convert("from_builtin_tensor", native_value, torch_type)
        return _convert(f"from_{native}", native_value, torch_type)

    def materialize_torch_to_native(
        self, torch_value: Value, *, static_info_cast_to: Type | None = None
    ) -> Value:
        """Emit the conversion of a torch value at the current place; return the builtin value.

        Args:
            torch_value: A tensor of known shape and element type, or a number.
            static_info_cast_to: A tensor type that knows more or less of the sizes, to cast to.

        Raises:
            ExportError: It is of another type.
        """
        native = self.torch_type_to_native(torch_value.type)
        if not isinstance(native, RankedTensorType):
            return _convert(f"to_{native}", torch_value, native)
        value = _convert("to_builtin_tensor", torch_value, native)
        return value if static_info_cast_to is None else _cast(value, static_info_cast_to)


def _cast(value: Value, type_: Type) -> Value:
    if value.type == type_:
        return value
    if not isinstance(value.type, ShapedType):
        raise ExportError(f"a value of type {value.type} is no {type_}")
    return Operation.create("tensor.cast", results=[type_], operands=[value]).result


def _convert(conversion: str, value: Value, type_: Type) -> Value:
    return Operation.create(f"torch_c.{conversion}", results=[type_], operands=[value]).result
