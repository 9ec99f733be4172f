"""CUDA driver API, as far as engines need it: memory, copies, streams and events.

The driver is on every machine that can run CUDA programs, so nothing needs to be installed. The
device's primary context is used, which the CUDA runtime, torch and TensorRT share, so that memory
and streams can be exchanged with them.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import weakref
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceError, PeltonError

ALIGNMENT = 256
"""Alignment in bytes that TensorRT requires of inputs and outputs; the driver's memory has it."""

_MAJOR, _MINOR = 75, 76
"""The device attributes of the compute capability (`CUdevice_attribute`)."""

_NON_BLOCKING = 1
_WITHOUT_TIMING = 2

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (POINTER(c_char), c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuMemAlloc_v2": (POINTER(c_void_p), c_size_t),
    "cuMemFree_v2": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
}
"""The functions of the driver that are used, with the types of their arguments."""


def load_driver() -> Any:
    """Return the library of the CUDA driver.

    Raises:
        DeviceError: This machine has no CUDA driver.
    """
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise DeviceError("this machine has no CUDA GPU, or no driver for it") from error
    for function, types in _SIGNATURES.items():
        getattr(library, function).argtypes = types
    return library


class Block:
    """Memory of a device, freed with the last reference to it.

    Attributes:
        address: Its address on the device, a multiple of `ALIGNMENT`.
        nbytes: Its size in bytes.
    """

    def __init__(self, gpu: Gpu, address: int, nbytes: int) -> None:
        self.address = address
        self.nbytes = nbytes
        weakref.finalize(self, gpu.release, "cuMemFree_v2", address).atexit = False


class Stream:
    """A stream that does not synchronize with the default one; `handle` is CUDA's."""

    def __init__(self, gpu: Gpu, handle: int) -> None:
        self.handle = handle
        weakref.finalize(self, gpu.release, "cuStreamDestroy_v2", handle).atexit = False


class Event:
    """A CUDA event; `handle` is CUDA's."""

    def __init__(self, gpu: Gpu, handle: int) -> None:
        self.handle = handle
        weakref.finalize(self, gpu.release, "cuEventDestroy_v2", handle).atexit = False


class Gpu:
    """One GPU, with its primary context. Stays open until the process ends.

    Args:
        library: The driver, as `load_driver` returns it.
        index: Which GPU, from 0.

    Raises:
        DeviceError: There is no such GPU.
    """

    def __init__(self, library: Any, index: int) -> None:
        self._library = library
        self.index = index
        try:
            self._call("cuInit", 0)
            count = self._integer("cuDeviceGetCount")
        except PeltonError as error:
            raise DeviceError(f"this machine has no CUDA GPU that can be used: {error}") from error
        if index >= count:
            raise DeviceError(f"there is no GPU {index}: CUDA has {count}, counted from 0")
        device = self._integer("cuDeviceGet", index)
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, len(name), device)
        self.name = name.value.decode(errors="replace")
        major = self._integer("cuDeviceGetAttribute", _MAJOR, device)
        minor = self._integer("cuDeviceGetAttribute", _MINOR, device)
        self.compute_capability = f"{major}.{minor}"
        self._context = self._pointer("cuDevicePrimaryCtxRetain", device)

    def __str__(self) -> str:
        return f"cuda:{self.index}"

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            text = c_char_p()
            self._library.cuGetErrorString(status, byref(text))
            reason = (text.value or b"unknown error").decode(errors="replace")
            raise PeltonError(f"CUDA failed: {reason} ({name} gave {status})")

    def _integer(self, name: str, *arguments: Any) -> int:
        value = c_int()
        self._call(name, byref(value), *arguments)
        return value.value

    def _pointer(self, name: str, *arguments: Any) -> int:
        value = c_void_p()
        self._call(name, byref(value), *arguments)
        return value.value or 0

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make this GPU the current one of the thread while the block runs."""
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._pointer("cuCtxPopCurrent_v2")

    def allocate(self, nbytes: int) -> Block:
        """Return a block of at least one byte, so that it has an address."""
        with self.active():
            return Block(self, self._pointer("cuMemAlloc_v2", max(nbytes, 1)), nbytes)

    def release(self, function: str, handle: int) -> None:
        """Free memory or destroy a handle by a driver function; it waits for work that uses it."""
        with self.active():
            self._call(function, handle)

    def copy_in(self, block: Block, array: NDArray[Any], stream: int) -> None:
        """Copy a contiguous array to the device, and wait for it.

        Args:
            block: The target.
            array: The source.
            stream: The handle of the stream to enqueue on.
        """
        if array.nbytes:
            with self.active():
                source = array.ctypes.data
                self._call("cuMemcpyHtoDAsync_v2", block.address, source, array.nbytes, stream)
                self._call("cuStreamSynchronize", stream)

    def copy_out(
        self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], stream: int
    ) -> NDArray[Any]:
        """Return a copy of an array on the device, once the stream has computed it.

        Args:
            address: The address of the array.
            shape: Its sizes.
            dtype: Its element type.
            stream: The handle of the stream to enqueue on and wait for.
        """
        array = np.empty(shape, dtype)
        with self.active():
            if array.nbytes:
                target = array.ctypes.data
                self._call("cuMemcpyDtoHAsync_v2", target, address, array.nbytes, stream)
            self._call("cuStreamSynchronize", stream)
        return array

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Enqueue a copy within the device.

        Args:
            target: The address to copy to.
            source: The address to copy from.
            nbytes: How many bytes.
            stream: The handle of the stream to enqueue on.
        """
        if nbytes:
            with self.active():
                self._call("cuMemcpyDtoDAsync_v2", target, source, nbytes, stream)

    def new_stream(self) -> Stream:
        """Return a new stream."""
        with self.active():
            return Stream(self, self._pointer("cuStreamCreate", _NON_BLOCKING))

    def synchronize(self, stream: int) -> None:
        """Wait until all work of a stream is complete."""
        with self.active():
            self._call("cuStreamSynchronize", stream)

    def new_event(self) -> Event:
        """Return a new event, which counts as complete until it is recorded."""
        with self.active():
            return Event(self, self._pointer("cuEventCreate", _WITHOUT_TIMING))

    def record(self, event: Event, stream: int) -> None:
        """Record an event: it completes with the work enqueued on a stream so far."""
        with self.active():
            self._call("cuEventRecord", event.handle, stream)

    def wait(self, stream: int, event: Event) -> None:
        """Make work that is enqueued on a stream from now on wait for an event."""
        with self.active():
            self._call("cuStreamWaitEvent", stream, event.handle, 0)


@functools.cache
def open_gpu(index: int) -> Gpu:
    """Return a GPU of this machine; the same object for the same index.

    Raises:
        DeviceError: This machine has no CUDA GPU, or none of that index.
    """
    return Gpu(load_driver(), index)
