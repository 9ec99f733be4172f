"""HAL buffer views of arrays, and arrays of HAL buffer views, for each array library.

An argument crosses without a copy where its memory can be used as it lies: contiguous, aligned to
`ALIGNMENT` bytes and on the device. Otherwise it is copied, so strided, expanded and unaligned
tensors are right.
"""

from __future__ import annotations

from typing import Any, Protocol

import iree.runtime as iree
import numpy as np

from ..call.dtypes import DTYPES, DType
from ..compat import dlpack_importer
from ..errors import DeviceError, SignatureError
from .host_arrays import (
    ArrayLibrary,
    DLPackArrays,
    LibraryTable,
    NumpyArrays,
    TorchArrays,
    numpy_of_dlpack,
)

ALIGNMENT = 64
"""Bytes to which IREE's host memory must be aligned (its heap allocator refuses anything else)."""

_HOST_KINDS = (1, 3)
"""DLPack's device types of memory that the processor can read: its own, and CUDA's pinned."""

_MEMORY = int(iree.MemoryType.DEVICE_LOCAL | iree.MemoryType.HOST_VISIBLE)
_USAGE = int(iree.BufferUsage.DEFAULT | iree.BufferUsage.MAPPING)


class HalDevice(Protocol):
    """What this module needs to know of an opened device."""

    @property
    def hal(self) -> Any:
        """The HAL device."""

    @property
    def dlpack(self) -> tuple[int, int]:
        """DLPack's device type and index."""


class HalArrays(ArrayLibrary, Protocol):
    """One array library: how its arrays become buffer views and back."""

    def to_view(self, device: HalDevice, array: Any, dtype: DType, copy: bool) -> tuple[Any, int]:
        """Return a HAL buffer view of `array`, and the address of the memory that `array` lends.

        The address is 0 where the view has memory of its own, because `array` is or must be
        copied. The view need not keep the memory alive: the caller holds `array` while it is in
        use.
        """

    def from_view(self, device: HalDevice, view: Any, dtype: DType) -> Any:
        """Return an array of the memory of a HAL buffer view."""


class HalNumpyArrays(NumpyArrays):
    """numpy arrays and HAL buffer views."""

    def to_view(self, device: HalDevice, array: Any, dtype: DType, copy: bool) -> tuple[Any, int]:
        """Return a buffer view; numpy's memory is used when it is aligned."""
        shape = np.shape(array)
        if 0 in shape:
            return _empty_view(device, shape, dtype), 0
        array = np.asarray(array, dtype.numpy, order="C").reshape(shape)  # in native byte order
        raw = array.reshape(-1).view(np.uint8)
        lendable = raw.flags.writeable and raw.ctypes.data % ALIGNMENT == 0
        if lendable and not copy and device.dlpack[0] == 1:
            # By DLPack, whose end takes Python's lock: a worker of IREE may be the last to hold it.
            lent = device.hal.from_dlpack_capsule(raw.__dlpack__())
            return iree.HalBufferView(lent.get_buffer(), shape, dtype.hal), raw.ctypes.data
        buffer = device.hal.allocator.allocate_buffer_copy(_MEMORY, _USAGE, device.hal, raw)
        return iree.HalBufferView(buffer, shape, dtype.hal), 0

    def from_view(self, device: HalDevice, view: Any, dtype: DType) -> Any:
        """Return an array over the buffer's mapped memory."""
        shape = tuple(view.shape)
        if 0 in shape:
            return np.empty(shape, dtype.numpy)
        mapped = view.map()
        flat = mapped.asarray((view.byte_length,), np.dtype(np.uint8))
        return flat.view(dtype.numpy).reshape(shape)


class HalTorchArrays(TorchArrays):
    """torch tensors and HAL buffer views.

    Args:
        torch: The module.
    """

    def __init__(self, torch: Any) -> None:
        super().__init__(torch)
        self._to_dlpack = torch.utils.dlpack.to_dlpack
        # What `torch.from_dlpack` does with a capsule, without asking whether it is one.
        self._from_dlpack = dlpack_importer(torch)

    def to_view(self, device: HalDevice, array: Any, dtype: DType, copy: bool) -> tuple[Any, int]:
        """Return a buffer view; the tensor's memory is used when it can be used as it lies."""
        if array.requires_grad:
            array = array.detach()
        if array.is_neg() or array.is_conj():  # marked so, while the memory holds other values
            array = array.resolve_conj().resolve_neg()
        if device.dlpack[0] != 1 or not array.is_cpu:
            self._check_device(device, array)
        try:
            address = array.data_ptr()
        except RuntimeError as error:  # sparse, nested, or a stand-in of a transformation
            raise SignatureError(
                f"a tensor without memory of its own was given ({array.layout}); pass a dense one"
            ) from error
        if not address:
            return _empty_view(device, tuple(array.shape), dtype), 0
        if copy and array.is_cpu:
            return self._owned_view(device, array, dtype), 0
        if copy or address % ALIGNMENT or not array.is_contiguous():
            array, address = self._aligned_copy(array), 0
        if dtype.is_float8:
            shape, array = tuple(array.shape), array.view(self.torch.uint8)
            view = device.hal.from_dlpack_capsule(self._to_dlpack(array))
            return iree.HalBufferView(view.get_buffer(), shape, dtype.hal), address
        return device.hal.from_dlpack_capsule(self._to_dlpack(array)), address

    def _check_device(self, device: HalDevice, array: Any) -> None:
        """Refuse a tensor of another device; wait for what computes one of this device."""
        if not (array.is_cpu if device.dlpack[0] == 1 else array.is_cuda):
            raise DeviceError(
                f"a tensor on {array.device} was given to a program on {device}; "
                f"move it with .to({self._name_of(device)!r})"
            )
        if array.is_cuda:
            self.torch.cuda.current_stream(array.device).synchronize()

    def _name_of(self, device: HalDevice) -> str:
        """Return what torch calls a device."""
        kind, index = device.dlpack
        return {1: "cpu", 2: f"cuda:{index}", 10: f"cuda:{index}"}.get(kind, str(device))

    def _owned_view(self, device: HalDevice, array: Any, dtype: DType) -> Any:
        """Return a view of a copy that IREE owns: it may do with it what it likes."""
        dense = array.contiguous()  # of one element, it may have any strides
        data = dense.as_strided((dense.numel(),), (1,)).view(self.torch.uint8).numpy()
        buffer = device.hal.allocator.allocate_buffer_copy(_MEMORY, _USAGE, device.hal, data)
        return iree.HalBufferView(buffer, tuple(array.shape), dtype.hal)

    def _aligned_copy(self, array: Any) -> Any:
        """Return a contiguous copy in memory of its own, which torch aligns."""
        copied = self.torch.empty(array.shape, dtype=array.dtype, device=array.device)
        return copied.copy_(array)

    def from_view(self, device: HalDevice, view: Any, dtype: DType) -> Any:
        """Return a tensor over the buffer's memory, of the element type of the signature."""
        wanted = self.dtype(dtype)
        if not view.byte_length:
            return self.torch.empty(view.shape, dtype=wanted)
        if dtype.is_float8:
            view = iree.HalBufferView(view.get_buffer(), tuple(view.shape), DTYPES["uint8"].hal)
        tensor = self._from_dlpack(device.hal.create_dlpack_capsule(view, *device.dlpack))
        # IREE's computed integers are signless: the signature knows the sign.
        return tensor if tensor.dtype is wanted else tensor.view(wanted)


class HalDLPackArrays(DLPackArrays):
    """Arrays of any other library with the DLPack protocol, and HAL buffer views."""

    def to_view(self, device: HalDevice, array: Any, dtype: DType, copy: bool) -> tuple[Any, int]:
        """Return a buffer view of the array's memory, or of a copy made through numpy."""
        kind, index = array.__dlpack_device__()
        if kind not in (device.dlpack[0], *_HOST_KINDS):
            raise DeviceError(
                f"a {type(array).__name__} on DLPack device {int(kind)}:{index} was given to a "
                f"program on {device}; move it there or to the host"
            )
        if not copy and kind == device.dlpack[0]:
            try:
                view = device.hal.from_dlpack_capsule(array.__dlpack__())
                return view, self.address(array)
            except (ValueError, IndexError, TypeError, BufferError):
                pass  # strided, unaligned or read-only: only a copy can cross
        return NUMPY.to_view(device, numpy_of_dlpack(array), dtype, copy=True)

    def from_view(self, device: HalDevice, view: Any, dtype: DType) -> Any:
        """Return an array of the library of the first argument, or numpy's if it has no way in."""
        return self.from_host(NUMPY.from_view(device, view, dtype), dtype)


def _empty_view(device: HalDevice, shape: tuple[int, ...], dtype: DType) -> Any:
    """Return a view without elements; a buffer must have memory all the same."""
    buffer = device.hal.allocator.allocate_buffer(_MEMORY, _USAGE, ALIGNMENT)
    return iree.HalBufferView(buffer, shape, dtype.hal)


NUMPY = HalNumpyArrays()
_LIBRARIES: LibraryTable[HalArrays] = LibraryTable(NUMPY, HalTorchArrays, HalDLPackArrays)

arrays_for = _LIBRARIES.of
"""Return the library of an array; see `LibraryTable.of`."""

default_arrays = _LIBRARIES.default
"""Return the library for results of a call without tensors; see `LibraryTable.default`."""
