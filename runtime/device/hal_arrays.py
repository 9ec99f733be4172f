"""HAL arrays: conversions between buffer views of IREE and arrays of each array library.

An argument is passed without a copy where its memory is contiguous, aligned to `ALIGNMENT` bytes
and on the device. Otherwise it is copied, so strided, expanded and unaligned tensors are valid.
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
"""Alignment in bytes of IREE's host memory (its heap allocator refuses any other)."""

_HOST_KINDS = (1, 3)
"""DLPack's device types of memory that the CPU can read: its own, and CUDA's pinned."""

_MEMORY = int(iree.MemoryType.DEVICE_LOCAL | iree.MemoryType.HOST_VISIBLE)
_USAGE = int(iree.BufferUsage.DEFAULT | iree.BufferUsage.MAPPING)


class HalDevice(Protocol):
    """The part of an opened device that conversions need."""

    @property
    def hal(self) -> Any:
        """The HAL device."""

    @property
    def dlpack(self) -> tuple[int, int]:
        """DLPack's device type and index."""


class HalArrays(ArrayLibrary, Protocol):
    """An array library with conversions to and from buffer views."""

    def to_view(self, device: HalDevice, array: Any, dtype: DType, copy: bool) -> tuple[Any, int]:
        """Return a HAL buffer view of an array, and the address of the memory that it borrows.

        The view does not own borrowed memory: the caller holds `array` while the view is in use.

        Args:
            device: The device of the program.
            array: An array of the library.
            dtype: The element type of the signature, which `array` has.
            copy: Never borrow the memory of `array`.

        Returns:
            The view and the address; the address is 0 where the view owns a copy.

        Raises:
            DeviceError: The array is on another device.
            SignatureError: The array has no dense memory.
        """

    def from_view(self, device: HalDevice, view: Any, dtype: DType) -> Any:
        """Return an array over the memory of a HAL buffer view.

        Args:
            device: The device of the program.
            view: The view.
            dtype: The element type of the signature.
        """


class HalNumpyArrays(NumpyArrays):
    """numpy arrays and HAL buffer views."""

    def to_view(self, device: HalDevice, array: Any, dtype: DType, copy: bool) -> tuple[Any, int]:
        """Return a buffer view, which borrows aligned and writeable memory.

        Args:
            device, array, dtype, copy: As in `HalArrays.to_view`.
        """
        shape = np.shape(array)
        if 0 in shape:
            return _empty_view(device, shape, dtype), 0
        array = np.asarray(array, dtype.numpy, order="C").reshape(shape)  # in native byte order
        raw = array.reshape(-1).view(np.uint8)
        usable = raw.flags.writeable and raw.ctypes.data % ALIGNMENT == 0
        if usable and not copy and device.dlpack[0] == 1:
            # By DLPack, whose deleter takes the GIL: a worker of IREE may drop the last reference.
            borrowed = device.hal.from_dlpack_capsule(raw.__dlpack__())
            return iree.HalBufferView(borrowed.get_buffer(), shape, dtype.hal), raw.ctypes.data
        buffer = device.hal.allocator.allocate_buffer_copy(_MEMORY, _USAGE, device.hal, raw)
        return iree.HalBufferView(buffer, shape, dtype.hal), 0

    def from_view(self, device: HalDevice, view: Any, dtype: DType) -> Any:
        """Return an array over the mapped memory of the buffer.

        Args:
            device, view, dtype: As in `HalArrays.from_view`.
        """
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
        """Return a buffer view, which borrows contiguous and aligned memory.

        Args:
            device, array, dtype, copy: As in `HalArrays.to_view`.

        Raises:
            DeviceError: The tensor is on another device.
            SignatureError: The tensor is sparse, or has no memory.
        """
        if array.requires_grad:
            array = array.detach()
        if array.is_neg() or array.is_conj():  # flags; the memory has other values
            array = array.resolve_conj().resolve_neg()
        if device.dlpack[0] != 1 or not array.is_cpu:
            self._check_device(device, array)
        try:
            address = array.data_ptr()
        except RuntimeError as error:  # sparse, nested, or a wrapper of a functorch transform
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
        """Refuse a tensor of another device; synchronize with the stream of one on this device."""
        if not (array.is_cpu if device.dlpack[0] == 1 else array.is_cuda):
            raise DeviceError(
                f"a tensor on {array.device} was given to a program on {device}; "
                f"move it with .to({self._name_of(device)!r})"
            )
        if array.is_cuda:
            self.torch.cuda.current_stream(array.device).synchronize()

    def _name_of(self, device: HalDevice) -> str:
        """Return torch's name of a device."""
        kind, index = device.dlpack
        return {1: "cpu", 2: f"cuda:{index}", 10: f"cuda:{index}"}.get(kind, str(device))

    def _owned_view(self, device: HalDevice, array: Any, dtype: DType) -> Any:
        """Return a view of a copy that IREE owns and may write to."""
        dense = array.contiguous()  # of one element, it may have any strides
        data = dense.as_strided((dense.numel(),), (1,)).view(self.torch.uint8).numpy()
        buffer = device.hal.allocator.allocate_buffer_copy(_MEMORY, _USAGE, device.hal, data)
        return iree.HalBufferView(buffer, tuple(array.shape), dtype.hal)

    def _aligned_copy(self, array: Any) -> Any:
        """Return a contiguous copy; torch aligns new memory."""
        copied = self.torch.empty(array.shape, dtype=array.dtype, device=array.device)
        return copied.copy_(array)

    def from_view(self, device: HalDevice, view: Any, dtype: DType) -> Any:
        """Return a tensor over the buffer's memory, of the element type of the signature.

        Args:
            device, view, dtype: As in `HalArrays.from_view`.
        """
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
        """Return a buffer view of the array's memory, or of a copy made by numpy.

        Args:
            device, array, dtype, copy: As in `HalArrays.to_view`.

        Raises:
            DeviceError: The array is on another device, and not readable by the CPU.
        """
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
                pass  # strided, unaligned or read-only: copied below
        return NUMPY.to_view(device, numpy_of_dlpack(array), dtype, copy=True)

    def from_view(self, device: HalDevice, view: Any, dtype: DType) -> Any:
        """Return an array of the library, or numpy's if the library has no `from_dlpack`.

        Args:
            device, view, dtype: As in `HalArrays.from_view`.
        """
        return self.from_host(NUMPY.from_view(device, view, dtype), dtype)


def _empty_view(device: HalDevice, shape: tuple[int, ...], dtype: DType) -> Any:
    """Return a view without elements, over a buffer that must not be empty."""
    buffer = device.hal.allocator.allocate_buffer(_MEMORY, _USAGE, ALIGNMENT)
    return iree.HalBufferView(buffer, shape, dtype.hal)


NUMPY = HalNumpyArrays()
_LIBRARIES: LibraryTable[HalArrays] = LibraryTable(NUMPY, HalTorchArrays, HalDLPackArrays)

arrays_for = _LIBRARIES.of
"""Return the library of an array; see `LibraryTable.of`."""

default_arrays = _LIBRARIES.default
"""Return the library for results of a call without tensors; see `LibraryTable.default`."""
