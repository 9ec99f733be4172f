"""Tensors in and out of a GPU's memory: torch's and CuPy's as they lie, all others by copies.

torch tensors are read and made on torch's current stream, so that no one waits. Arrays with
`__cuda_array_interface__`, such as CuPy's, are read where they lie. What is in the host's memory
(numpy) is copied to the device, and the results back.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..call.dtypes import DType
from ..errors import DeviceError, SignatureError
from . import host_arrays
from .cuda import ALIGNMENT, Block, Gpu


@dataclass(frozen=True)
class Lent:
    """Memory on the device, and the object that keeps it.

    Attributes:
        address: Where it is.
        owner: What must live until the work that uses the memory has been given to a stream.
        until_done: Whether it must even live until that work is done.
    """

    address: int
    owner: Any
    until_done: bool = True


class Workspace:
    """Device memory that one thread uses again from call to call, by what it is for.

    Uses of it must be in the order of a stream, or done when a call returns.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._blocks: dict[str, Block] = {}

    def block(self, name: str, nbytes: int) -> Block:
        """Return memory of at least `nbytes`; its old contents are lost."""
        found = self._blocks.get(name)
        if found is None or found.nbytes < nbytes:
            self._blocks.pop(name, None)
            found = self._blocks[name] = self.gpu.allocate(nbytes)
        return found


class GpuArrays(Protocol):
    """One array library, as calls on a GPU see it."""

    def stream(self, own: int) -> int:
        """Return the handle of the stream to work on; `own` is the one of the module."""

    def lend(self, array: Any, what: str, work: Workspace, stream: int) -> Lent:
        """Return the contents of an array on the device, contiguous and aligned.

        `what` is its name in messages and in the workspace.
        """

    def allocate(self, name: str, nbytes: int, work: Workspace) -> Lent:
        """Return memory for a result."""

    def result(self, lent: Lent, shape: tuple[int, ...], dtype: DType, stream: int) -> Any:
        """Return the array of a result in memory of `allocate`."""

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return an array of the library with the contents of an array in the host's memory."""


def gpu_arrays_for(gpu: Gpu, array: Any) -> GpuArrays:
    """Return the array library of a tensor."""
    torch = _torch_of(array)
    if torch is not None:
        return TorchArrays(torch, gpu)
    if hasattr(array, "__cuda_array_interface__"):
        return InterfaceArrays(gpu, array)
    return HostArrays(gpu, host_arrays.arrays_for(array))


def default_gpu_arrays(gpu: Gpu) -> GpuArrays:
    """Return the array library for results of a call without tensors."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return TorchArrays(torch, gpu)
    return HostArrays(gpu, host_arrays.default_arrays())


def _torch_of(array: Any) -> Any:
    """Return torch for its tensors, unless it cannot use GPUs: its tensors are the host's then."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return None
    return torch if torch.cuda.is_available() else None


class HostArrays:
    """Arrays in the host's memory, copied to the device and back.

    Args:
        gpu: The device.
        library: The library of the results.
    """

    def __init__(self, gpu: Gpu, library: host_arrays.ArrayLibrary) -> None:
        self._gpu = gpu
        self._library = library

    def stream(self, own: int) -> int:
        """Return the module's own stream."""
        return own

    def lend(self, array: Any, what: str, work: Workspace, stream: int) -> Lent:
        """Return a copy in the workspace."""
        contents = host_arrays.host_array(array, what)
        block = work.block(what, contents.nbytes)
        self._gpu.copy_in(block, contents, stream)
        return Lent(block.address, block)

    def allocate(self, name: str, nbytes: int, work: Workspace) -> Lent:
        """Return memory of the workspace: `result` copies out of it."""
        block = work.block(name, nbytes)
        return Lent(block.address, block)

    def result(self, lent: Lent, shape: tuple[int, ...], dtype: DType, stream: int) -> Any:
        """Return a copy in the host's memory, once it is computed."""
        return self.from_host(self._gpu.copy_out(lent.address, shape, dtype.numpy, stream), dtype)

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return an array of the library."""
        return self._library.from_host(array, dtype)


class TorchArrays:
    """torch tensors on the GPU."""

    def __init__(self, torch: Any, gpu: Gpu) -> None:
        self._torch = torch
        self._gpu = gpu
        self._device = torch.device("cuda", gpu.index)

    def stream(self, own: int) -> int:
        """Return torch's current stream."""
        handle: int = self._torch.cuda.current_stream(self._device).cuda_stream
        return handle

    def lend(self, array: Any, what: str, work: Workspace, stream: int) -> Lent:
        """Return a tensor's memory, or that of a contiguous and aligned copy."""
        if array.device != self._device:
            raise DeviceError(
                f"{what} is a tensor on {array.device}, the program is on {self._device}; "
                f"move it with .to({str(self._device)!r})"
            )
        if str(array.layout) != "torch.strided":
            raise SignatureError(f"{what} has layout {array.layout}; pass a dense tensor")
        tensor = array.detach().resolve_conj().resolve_neg().contiguous()
        if tensor.data_ptr() % ALIGNMENT:
            tensor = tensor.clone()
        if not tensor.numel():
            return self.allocate(what, 0, work)
        return Lent(tensor.data_ptr(), tensor, until_done=False)  # torch frees in a stream's order

    def allocate(self, name: str, nbytes: int, work: Workspace) -> Lent:
        """Return a new tensor of bytes; at least one, so that it has an address."""
        memory = self._torch.empty(max(nbytes, 1), dtype=self._torch.uint8, device=self._device)
        return Lent(memory.data_ptr(), memory)

    def result(self, lent: Lent, shape: tuple[int, ...], dtype: DType, stream: int) -> Any:
        """Return a tensor over the memory; what reads it on the stream comes after the call."""
        nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        return lent.owner[:nbytes].view(getattr(self._torch, dtype.name)).view(shape)

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return a tensor on the GPU."""
        return host_arrays.TorchArrays(self._torch).from_host(array, dtype).to(self._device)


class DeviceArray:
    """An array on a GPU for libraries that know `__cuda_array_interface__`.

    Args:
        lent: Its memory.
        shape: Its sizes.
        dtype: The element type.
        stream: The stream that computes it, if it is not there yet.
    """

    def __init__(
        self, lent: Lent, shape: tuple[int, ...], dtype: DType, stream: int | None
    ) -> None:
        self._lent = lent
        self.shape = shape
        self.dtype = dtype.numpy
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (lent.address, False),
            "shape": shape,
            "strides": None,
            "typestr": dtype.numpy.str,
            "stream": stream,
        }


class InterfaceArrays:
    """Arrays with `__cuda_array_interface__`, such as CuPy's.

    Args:
        gpu: The device.
        array: An array of the library, whose `asarray` makes the results.
    """

    def __init__(self, gpu: Gpu, array: Any) -> None:
        self._gpu = gpu
        namespace = getattr(array, "__array_namespace__", None)
        self._asarray = getattr(namespace(), "asarray", None) if namespace else None
        self._stream: int | None = array.__cuda_array_interface__.get("stream")

    def stream(self, own: int) -> int:
        """Return the stream that the array is computed on, where it says so."""
        return self._stream or own

    def lend(self, array: Any, what: str, work: Workspace, stream: int) -> Lent:
        """Return an array's memory, or an aligned copy of it."""
        place = getattr(array, "__dlpack_device__", lambda: (2, self._gpu.index))()
        if int(place[1]) != self._gpu.index:
            raise DeviceError(f"{what} is on GPU {int(place[1])}, the program is on {self._gpu}")
        interface = array.__cuda_array_interface__
        address, shape = interface["data"][0], tuple(interface["shape"])
        itemsize = np.dtype(interface["typestr"]).itemsize
        nbytes = itemsize * int(np.prod(shape, dtype=np.int64))
        strides = interface.get("strides")
        if nbytes and strides is not None and tuple(strides) != _contiguous(shape, itemsize):
            raise SignatureError(f"{what} has gaps between its elements; pass a contiguous copy")
        if interface.get("stream") not in (None, stream):
            self._gpu.synchronize(interface["stream"])
        if nbytes and address % ALIGNMENT == 0:
            return Lent(address, array)
        block = work.block(what, nbytes)
        self._gpu.copy(block.address, address, nbytes, stream)
        return Lent(block.address, (block, array))

    def allocate(self, name: str, nbytes: int, work: Workspace) -> Lent:
        """Return new memory, which the result keeps."""
        block = self._gpu.allocate(nbytes)
        return Lent(block.address, block)

    def result(self, lent: Lent, shape: tuple[int, ...], dtype: DType, stream: int) -> Any:
        """Return an array of the library of the first argument, or one for any library."""
        if self._stream is None:  # the module's own stream may be gone when the array is used
            self._gpu.synchronize(stream)
        array = DeviceArray(lent, shape, dtype, self._stream)
        return self._asarray(array) if self._asarray else array

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return an array of the library with the contents of an array of the host."""
        return self._asarray(array) if self._asarray else array


def _contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of a contiguous array."""
    strides = [itemsize]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides)) if shape else ()
