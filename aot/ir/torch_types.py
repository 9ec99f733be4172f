"""Tensor types of the torch dialect and of builtin MLIR: reader, printer and conversion."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

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
from ..spec.sizes import is_static

_NUMBERS = {"!torch.bool": "i1", "!torch.int": "i64", "!torch.float": "f64"}
_TORCH = re.compile(r"!torch\.v?tensor<\[(?P<sizes>[\d?,]*)\],(?P<element>[^,]+)(?:,.*)?>")
_BUILTIN = re.compile(
    r"tensor<(?P<sizes>(?:(?:\d+|\?)x)*)(?P<element>(?!x)[A-Za-z!][^,]*)(?:,.*)?>"
)


@dataclass(frozen=True)
class TensorType:
    """A ranked tensor type: the one reader and printer of such types as MLIR text.

    Attributes:
        shape: Its sizes; None: dynamic.
        element: The element type as the text spells it: `si64` in the torch dialect, `i64` in
            builtin MLIR.

    Example:
        >>> TensorType.parse_torch("!torch.vtensor<[2,?],si64>")
        TensorType(shape=(2, None), element='si64')
        >>> TensorType((2, None), "si64").builtin()
        'tensor<2x?xi64>'
    """

    shape: tuple[int | None, ...]
    element: str

    @classmethod
    def of(cls, shape: Iterable[object], element: str) -> TensorType:
        """Return the type of a shape in which every size that is not an integer is dynamic.

        Example:
            >>> TensorType.of([2, "batch"], "f32").torch()
            '!torch.vtensor<[2,?],f32>'
        """
        return cls(tuple(size if is_static(size) else None for size in shape), element)

    @classmethod
    def parse_torch(cls, text: str) -> TensorType | None:
        """Return the type that a text of the torch dialect spells; None for any other type.

        Both value tensors and mutable ones (`!torch.tensor`) are read.

        Example:
            >>> TensorType.parse_torch("!torch.vtensor<[],f32>")
            TensorType(shape=(), element='f32')
            >>> TensorType.parse_torch("!torch.int") is None
            True
        """
        match = _TORCH.fullmatch(text)
        return None if match is None else cls(_sizes(match["sizes"], ","), match["element"])

    @classmethod
    def parse_builtin(cls, text: str) -> TensorType | None:
        """Return the type that a text of builtin MLIR spells; None for any other type.

        An encoding of the tensor is left out.

        Example:
            >>> TensorType.parse_builtin("tensor<?x3xcomplex<f32>>")
            TensorType(shape=(None, 3), element='complex<f32>')
            >>> TensorType.parse_builtin("tensor<*xf32>") is None
            True
        """
        match = _BUILTIN.fullmatch(text)
        return None if match is None else cls(_sizes(match["sizes"], "x"), match["element"])

    def torch(self) -> str:
        """Return the text of the value tensor type in the torch dialect.

        Example:
            >>> TensorType((None, 0), "bf16").torch()
            '!torch.vtensor<[?,0],bf16>'
        """
        return f"!torch.vtensor<[{','.join(map(_size, self.shape))}],{self.element}>"

    def builtin(self, *, signless: bool = True) -> str:
        """Return the text of the builtin tensor type.

        Args:
            signless: Give integers no sign, as nearly all builtin operations want them.

        Example:
            >>> TensorType((4,), "ui8").builtin(), TensorType((4,), "ui8").builtin(signless=False)
            ('tensor<4xi8>', 'tensor<4xui8>')
        """
        element = self.element
        if signless and element.startswith(("si", "ui")):
            element = element[1:]
        return f"tensor<{''.join(f'{_size(size)}x' for size in self.shape)}{element}>"

    def with_element(self, element: str) -> TensorType:
        """Return the type of the same shape with another element type."""
        return replace(self, element=element)

    @property
    def is_static(self) -> bool:
        """Whether all sizes are known."""
        return None not in self.shape


def _sizes(text: str, separator: str) -> tuple[int | None, ...]:
    return tuple(None if size == "?" else int(size) for size in text.split(separator) if size)


def _size(size: int | None) -> str:
    return "?" if size is None else str(size)


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
        tensor = TensorType.parse_torch(text)
        if tensor is None:
            raise ExportError(
                f"{text} has no builtin form; convert tensors of known shape and type, and numbers"
            )
        return self.parse(tensor.builtin(signless=signless))

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
