"""MLIR types as torch has them: tensors of both dialects, and numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from iree.compiler.ir import Type

from pelton.runtime.call.dtypes import BY_TORCH_MLIR, DType

from ...ir import torch_types


@dataclass(frozen=True)
class TensorType:
    """A tensor type of the torch dialect or of builtin MLIR.

    Attributes:
        shape: Its sizes; None: dynamic.
        dtype: The element type; a builtin type without a sign is taken as signed.
    """

    shape: tuple[int | None, ...]
    dtype: torch.dtype


_NUMBERS = {
    "index": torch.int64,
    "!torch.int": torch.int64,
    "!torch.bool": torch.bool,
    "!torch.float": torch.float64,
}


def torch_dtype(row: DType) -> torch.dtype:
    """Return a row of the dtype table as torch's type.

    Example:
        >>> from pelton.runtime.call.dtypes import DTYPES
        >>> torch_dtype(DTYPES["bfloat16"])
        torch.bfloat16
    """
    dtype = getattr(torch, row.name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def element_dtype(spelling: str) -> torch.dtype | None:
    """Return the torch type of an MLIR element type, None where there is none.

    Example:
        >>> element_dtype("i32"), element_dtype("ui8"), element_dtype("i3")
        (torch.int32, torch.uint8, None)
    """
    row = BY_TORCH_MLIR.get(spelling) or BY_TORCH_MLIR.get(f"s{spelling}")
    return None if row is None else torch_dtype(row)


def tensor_type(type_: Type) -> TensorType | None:
    """Return a tensor type, None for any other type."""
    text = str(type_)
    parse = torch_types.TensorType
    found = parse.parse_torch(text) or parse.parse_builtin(text)
    dtype = element_dtype(found.element) if found else None
    return None if found is None or dtype is None else TensorType(found.shape, dtype)


def number_dtype(type_: Type) -> torch.dtype | None:
    """Return the element type of the 0-d tensor that holds a number of a type; None: no number."""
    text = str(type_)
    return _NUMBERS.get(text) or (None if text.startswith(("!", "tensor")) else element_dtype(text))


def value_dtype(type_: Type) -> torch.dtype:
    """Return the element type of a tensor type or number.

    Raises:
        TypeError: It is neither.
    """
    tensor = tensor_type(type_)
    dtype = number_dtype(type_) if tensor is None else tensor.dtype
    if dtype is None:
        raise TypeError(f"a value of type {type_} has no form in torch")
    return dtype


def is_python_number(type_: Type) -> bool:
    """Return whether numbers of a type are Python's integers, so that they may drive shapes."""
    return str(type_) in ("index", "i64", "!torch.int")
