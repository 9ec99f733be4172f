"""Archives that the tests of the formats share."""

from __future__ import annotations

import struct

import ml_dtypes
import numpy as np

from pelton.runtime.archive.parameter import Parameter, blob_of, parameter_of

WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)
SPLAT = Parameter("splat", "float32", (64,), 256, np.float32([10]).view(np.uint8), splat=True)


def varied_parameters() -> list[Parameter]:
    """Tied, strided, empty, scalar and packed tensors, odd names and types."""
    return [
        parameter_of("weight", WEIGHT),
        parameter_of("tied", WEIGHT),
        parameter_of("strided", WEIGHT.T),
        parameter_of("half", np.array([1, 2, 3], ml_dtypes.bfloat16)),
        parameter_of("eighth", np.array([1, -2], ml_dtypes.float8_e4m3fn)),
        parameter_of("empty", np.zeros((0, 4), np.int64)),
        parameter_of("scalar", np.float64(2.5)),
        parameter_of("mask", np.array([True, False, True])),
        parameter_of("complex", np.array([1 + 2j], np.complex64)),
        parameter_of("packed", np.array([0.5, 1, 6, 4], ml_dtypes.float4_e2m1fn)),
        parameter_of("größe/重み\n", np.zeros(3, np.uint16)),
        blob_of("blob", b"hello"),
    ]


def text(value: str) -> bytes:
    """A text in a GGUF file."""
    return struct.pack("<Q", len(value.encode())) + value.encode()


def gguf_file(*, alignment: int = 64) -> bytes:
    """A GGUF file with a float32 tensor of 2x3 and a Q8_0 tensor of 2x32."""
    pairs = [
        text("general.name") + struct.pack("<I", 8) + text("tiny"),
        text("general.alignment") + struct.pack("<II", 4, alignment),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        text("scores") + struct.pack("<IIQ", 9, 6, 2) + struct.pack("<ff", 1, 2),
        text("flag") + struct.pack("<IB", 7, 1),
    ]
    heads = [
        text("weight") + struct.pack("<IQQIQ", 2, 3, 2, 0, 0),
        text("quantised") + struct.pack("<IQQIQ", 2, 32, 2, 8, 64),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(heads), len(pairs)) + b"".join(pairs + heads)
    head += bytes(-len(head) % alignment)
    return head + WEIGHT.tobytes() + bytes(40) + bytes(range(68))
