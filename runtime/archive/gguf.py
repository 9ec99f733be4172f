"""GGUF archives: the reader.

Little-endian: counts, key-value pairs (skipped except for the alignment), a description of each
tensor and the contents. Quantised tensors have block types, which parameters have by name.
"""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from ..checked import align, require, require_unique
from ..errors import ArtifactError
from .layout import require_disjoint, require_shape
from .parameter import Parameter

_VERSIONS = (2, 3)
_MAX_RANK = 8

# code: name (in `DTYPES` where there is one), elements of a block, bytes of a block
_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("float32", 1, 4),
    1: ("float16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("int8", 1, 1),
    25: ("int16", 1, 2),
    26: ("int32", 1, 4),
    27: ("int64", 1, 8),
    28: ("float64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("bfloat16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
}

# bytes of the values of each type of key-value pair that has a fixed size
_VALUE_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_UINT32, _STRING, _ARRAY = 4, 8, 9
_ALIGNMENT_KEY = b"general.alignment"


def read(memory: NDArray[np.uint8]) -> list[Parameter]:
    """Return the parameters in the bytes of an archive; their contents are not touched.

    Raises:
        ArtifactError: The bytes are not a valid archive.
    """
    cursor = _Cursor(memory)
    require(cursor.take(4) == b"GGUF", "it does not start with GGUF")
    version = cursor.number("<I")
    require(version in _VERSIONS, f"its version is {version}; known are {_VERSIONS}")
    tensor_count, pair_count = cursor.number("<Q"), cursor.number("<Q")
    alignment = 32
    for _ in range(pair_count):
        key = cursor.text()
        kind = cursor.number("<I")
        if key == _ALIGNMENT_KEY and kind == _UINT32:
            alignment = cursor.number("<I")
        else:
            cursor.skip_value(kind)
    require(0 < alignment <= 1 << 20, f"its alignment is {alignment}")
    heads = [_head(cursor) for _ in range(tensor_count)]
    contents = memory[min(align(cursor.offset, alignment), len(memory)) :]
    parameters, spans = [], []
    for name, type_name, shape, start, nbytes in heads:
        end = start + nbytes
        require(end <= len(contents), f"{name!r} ends at byte {end} of {len(contents)}")
        parameters.append(Parameter(name, type_name, shape, nbytes, contents[start:end]))
        spans.append((start, end, name))
    require_unique(parameter.name for parameter in parameters)
    require_disjoint(spans)
    return parameters


def _head(cursor: _Cursor) -> tuple[str, str, tuple[int, ...], int, int]:
    try:
        name = cursor.text().decode()
    except UnicodeDecodeError as error:
        raise ArtifactError(f"the name of a tensor is not UTF-8: {error}") from error
    rank = cursor.number("<I")
    require(rank <= _MAX_RANK, f"{name!r} has {rank} dimensions")
    # The format lists the fastest dimension first.
    shape = require_shape(name, [cursor.number("<Q") for _ in range(rank)][::-1])
    code, start = cursor.number("<I"), cursor.number("<Q")
    require(code in _TYPES, f"{name!r} has element type {code}, which is not known")
    type_name, block, block_bytes = _TYPES[code]
    divisible = (shape[-1] if shape else 1) % block == 0
    require(divisible, f"{name!r} has rows of {shape[-1:]} elements, not a multiple of {block}")
    return name, type_name, shape, start, math.prod(shape) // block * block_bytes


class _Cursor:
    """Reads forward through the bytes of a file, and refuses to read beyond the end."""

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self._memory = memory
        self.offset = 0

    @property
    def left(self) -> int:
        """The number of bytes left."""
        return len(self._memory) - self.offset

    def take(self, length: int) -> bytes:
        """Return the next `length` bytes."""
        start = self._advance(length)
        return self._memory[start : start + length].tobytes()

    def number(self, form: str) -> int:
        """Return the next number, in a format of `struct`."""
        start = self._advance(struct.calcsize(form))
        return int(struct.unpack_from(form, self._memory.data, start)[0])

    def text(self) -> bytes:
        """Return the next text, which its length precedes."""
        return self.take(self.number("<Q"))

    def skip_value(self, kind: int) -> None:
        """Skip the value of a key-value pair."""
        count = 1
        if kind == _ARRAY:
            kind, count = self.number("<I"), self.number("<Q")
        if kind == _STRING:
            for _ in range(count):
                self._advance(self.number("<Q"))
        else:
            require(kind in _VALUE_BYTES, f"it has a value of type {kind} at byte {self.offset}")
            self._advance(count * _VALUE_BYTES[kind])

    def _advance(self, length: int) -> int:
        require(length <= self.left, f"it is cut off: {length} bytes expected, {self.left} left")
        start = self.offset
        self.offset += length
        return start
