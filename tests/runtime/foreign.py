"""Arrays of libraries that have the DLPack protocol and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np


class DLPackArray:
    """An array whose memory is that of a numpy array or torch tensor.

    Its `shape` is a list, to be no torch or numpy type by accident.
    """

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    @property
    def shape(self) -> list[int]:
        return list(self.memory.shape)

    @property
    def dtype(self) -> Any:
        return self.memory.dtype

    def __dlpack__(self, **options: Any) -> Any:
        return self.memory.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.memory.__dlpack_device__()
        return device


class NamespaceArray(DLPackArray):
    """An array of a library that follows the array API standard."""

    def __array_namespace__(self) -> Any:
        return SimpleNamespace(from_dlpack=lambda array: NamespaceArray(np.from_dlpack(array)))


class DistantArray(DLPackArray):
    """An array that claims to be on a GPU."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def unaligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy whose memory starts 4 bytes behind a boundary of 64."""
    raw = np.empty(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + 4
    copied = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy whose memory starts at a boundary of 64 bytes."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copied = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied
