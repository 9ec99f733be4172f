"""Element types: one table, from which every other spelling is derived.

Columns: the name (torch's and numpy's word for it), the element type in builtin MLIR tensors, the
element type in the torch dialect (signed where torch is), IREE's HAL element type code
(`iree_hal_element_type_t`), the code in safetensors headers, the element type number of ONNX
(`TensorProto.DataType`) and TensorRT's name. None: the format has no such type.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class DType:
    """One element type, with its spelling in each format that Pelton reads or writes."""

    name: str
    bits: int
    mlir: str
    torch_mlir: str
    hal: int
    safetensors: str | None
    onnx: int | None
    tensorrt: str | None

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type (from `ml_dtypes` where numpy has none).

        Example:
            >>> DTYPES["bfloat16"].numpy
            dtype(bfloat16)
        """
        return np.dtype(getattr(ml_dtypes, self.name, None) or self.name)

    @cached_property
    def is_float8(self) -> bool:
        """Whether it is one of the 8-bit floats, which DLPack's C interface does not carry."""
        return self.mlir.startswith("f8")

    @property
    def itemsize(self) -> int:
        """Bytes of one element (1 for the types narrower than a byte)."""
        return max(1, self.bits // 8)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"DTYPES[{self.name!r}]"


_ROWS = (
    #     name             bits mlir        torch_mlir  hal         safetensors onnx  tensorrt
    DType("bool", 8, "i1", "i1", 0x13000008, "BOOL", 9, "BOOL"),
    DType("int8", 8, "i8", "si8", 0x11000008, "I8", 3, "INT8"),
    DType("int16", 16, "i16", "si16", 0x11000010, "I16", 5, None),
    DType("int32", 32, "i32", "si32", 0x11000020, "I32", 6, "INT32"),
    DType("int64", 64, "i64", "si64", 0x11000040, "I64", 7, "INT64"),
    DType("uint8", 8, "i8", "ui8", 0x12000008, "U8", 2, "UINT8"),
    DType("uint16", 16, "i16", "ui16", 0x12000010, "U16", 4, None),
    DType("uint32", 32, "i32", "ui32", 0x12000020, "U32", 12, None),
    DType("uint64", 64, "i64", "ui64", 0x12000040, "U64", 13, None),
    DType("float16", 16, "f16", "f16", 0x21000010, "F16", 10, "HALF"),
    DType("bfloat16", 16, "bf16", "bf16", 0x22000010, "BF16", 16, "BF16"),
    DType("float32", 32, "f32", "f32", 0x21000020, "F32", 1, "FLOAT"),
    DType("float64", 64, "f64", "f64", 0x21000040, "F64", 11, None),
    DType("complex64", 64, "complex<f32>", "complex<f32>", 0x23000040, "C64", 14, None),
    DType("complex128", 128, "complex<f64>", "complex<f64>", 0x23000080, None, 15, None),
    DType("float8_e4m3fn", 8, "f8E4M3FN", "f8E4M3FN", 0x25000008, "F8_E4M3", 17, "FP8"),
    DType("float8_e4m3fnuz", 8, "f8E4M3FNUZ", "f8E4M3FNUZ", 0x27000008, "F8_E4M3FNUZ", 18, None),
    DType("float8_e5m2", 8, "f8E5M2", "f8E5M2", 0x24000008, "F8_E5M2", 19, None),
    DType("float8_e5m2fnuz", 8, "f8E5M2FNUZ", "f8E5M2FNUZ", 0x26000008, "F8_E5M2FNUZ", 20, None),
    DType("float8_e8m0fnu", 8, "f8E8M0FNU", "f8E8M0FNU", 0x28000008, "F8_E8M0", 24, None),
)

DTYPES: dict[str, DType] = {row.name: row for row in _ROWS}
"""All element types by name."""

PACKED_DTYPES: dict[str, DType] = {
    row.name: row
    for row in (
        DType("int4", 4, "i4", "si4", 0x11000004, None, 22, "INT4"),
        DType("uint4", 4, "i4", "ui4", 0x12000004, None, 21, None),
        DType("float4_e2m1fn", 4, "f4E2M1FN", "f4E2M1FN", 0, "F4", 23, "FP4"),
    )
}
"""Element types narrower than a byte: archives store them packed, the low bits first."""

BY_TORCH_MLIR: dict[str, DType] = {row.torch_mlir: row for row in _ROWS}
"""Element types by their spelling in the torch dialect."""

BY_SAFETENSORS: dict[str, DType] = {
    row.safetensors: row for row in (*_ROWS, *PACKED_DTYPES.values()) if row.safetensors
}
"""Element types by their code in safetensors headers."""


def dtype_of(value: Any) -> DType | None:
    """Return the row of a torch dtype, a numpy dtype (or scalar type), or a name; None if unknown.

    Example:
        >>> dtype_of(np.float32).name
        'float32'
        >>> dtype_of("torch.int64").name
        'int64'
        >>> dtype_of("text") is None
        True
    """
    if isinstance(value, (np.dtype, type)):
        try:
            return DTYPES.get(np.dtype(value).name)
        except TypeError:
            return None
    return DTYPES.get(str(value).removeprefix("torch."))
