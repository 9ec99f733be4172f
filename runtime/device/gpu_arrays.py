"""GPU arrays: tensors of torch and CuPy in place, those of the host by copies.

torch tensors are read and made on torch's current stream, so that no call waits. Arrays with
`__cuda_array_interface__`, such as CuPy's, are read in place. Arrays in the host's memory (numpy)
are copied to the device, and the results back.
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
class DeviceBuffer:
    """A buffer in the device's memory, and the object that owns it.

    Attributes:
        address: The address on the device.
        owner: The object that must live until the work that uses the buffer is enqueued.
        keep_until_complete: Whether the owner must live until that work is complete.
    """

    address: int
    owner: Any
    keep_until_complete: bool = True


class DoubleBuffer:
    """A piece of state on the device: engines read `current` and write `spare`.

    Args:
        current: The buffer with its value.
        spare: A buffer of the same size for the next value.
    """

    def __init__(self, current: Block, spare: Block) -> None:
        self.current = current
        self.spare = spare

    def swap(self) -> None:
        """Make the value that was written the current one."""
        self.current, self.spare = self.spare, self.current


class Workspace:
    """Device memory that one thread reuses from call to call, by name.

    Its uses must be ordered by a stream, or complete when a call returns.

    Args:
        gpu: The device.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._blocks: dict[str, Block] = {}

    def block(self, name: str, nbytes: int) -> Block:
        """Return the block of a name, of at least `nbytes`; its contents are undefined."""
        found = self._blocks.get(name)
        if found is None or found.nbytes < nbytes:
            self._blocks.pop(name, None)
            found = self._blocks[name] = self.gpu.allocate(nbytes)
        return found


class GpuArrays(Protocol):
    """An array library whose tensors are arguments and results of a call on a GPU."""

    def stream(self, own: int) -> int:
        """Return the handle of the stream to enqueue on; `own` is the module's stream."""

    def to_device(self, array: Any, name: str, work: Workspace, stream: int) -> DeviceBuffer:
        """Return a buffer with the elements of an array, contiguous and aligned.

        Args:
            array: An array of the library.
            name: What messages call it; also the name of a copy in the workspace.
            work: The workspace of the thread.
            stream: The handle of the stream to enqueue copies on.

        Raises:
            DeviceError: The array is on another device.
            SignatureError: Its elements cannot be read.
        """

    def allocate(self, name: str, nbytes: int, work: Workspace) -> DeviceBuffer:
        """Return a buffer for a result.

        Args:
            name: The name of a block in the workspace.
            nbytes: The size of the result.
            work: The workspace of the thread.
        """

    def result(
        self, buffer: DeviceBuffer, shape: tuple[int, ...], dtype: DType, stream: int
    ) -> Any:
        """Return a result as an array of the library.

        Args:
            buffer: A buffer from `allocate`.
            shape: The sizes of the result.
            dtype: The element type.
            stream: The handle of the stream that computes it.
        """

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return an array of the library with the elements of an array of the host."""


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
    """Return torch for its tensors; None for other arrays, and where torch cannot use GPUs."""
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

    def to_device(self, array: Any, name: str, work: Workspace, stream: int) -> DeviceBuffer:
        """Return a copy in the workspace.

        Args:
            array, name, work, stream: As in `GpuArrays.to_device`.

        Raises:
            SignatureError: numpy cannot read the array.
        """
        contents = host_arrays.host_array(array, name)
        block = work.block(name, contents.nbytes)
        self._gpu.copy_in(block, contents, stream)
        return DeviceBuffer(block.address, block)

    def allocate(self, name: str, nbytes: int, work: Workspace) -> DeviceBuffer:
        """Return a block of the workspace, from which `result` copies.

        Args:
            name, nbytes, work: As in `GpuArrays.allocate`.
        """
        block = work.block(name, nbytes)
        return DeviceBuffer(block.address, block)

    def result(
        self, buffer: DeviceBuffer, shape: tuple[int, ...], dtype: DType, stream: int
    ) -> Any:
        """Return a copy in the host's memory, once the result is computed.

        Args:
            buffer, shape, dtype, stream: As in `GpuArrays.result`.
        """
        return self.from_host(self._gpu.copy_out(buffer.address, shape, dtype.numpy, stream), dtype)

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return an array of the library."""
        return self._library.from_host(array, dtype)


class TorchArrays:
    """torch tensors on the GPU.

    Args:
        torch: The module.
        gpu: The device.
    """

    def __init__(self, torch: Any, gpu: Gpu) -> None:
        self._torch = torch
        self._gpu = gpu
        self._device = torch.device("cuda", gpu.index)

    def stream(self, own: int) -> int:
        """Return torch's current stream."""
        handle: int = self._torch.cuda.current_stream(self._device).cuda_stream
        return handle

    def to_device(self, array: Any, name: str, work: Workspace, stream: int) -> DeviceBuffer:
        """Return the memory of a tensor, or that of a contiguous and aligned copy.

        Args:
            array, name, work, stream: As in `GpuArrays.to_device`.

        Raises:
            DeviceError: The tensor is on another device.
            SignatureError: The tensor is not dense.
        """
        if array.device != self._device:
            raise DeviceError(
                f"{name} is a tensor on {array.device}, the program is on {self._device}; "
                f"move it with .to({str(self._device)!r})"
            )
        if str(array.layout) != "torch.strided":
            raise SignatureError(f"{name} has layout {array.layout}; pass a dense tensor")
        tensor = array.detach().resolve_conj().resolve_neg().contiguous()
        if tensor.data_ptr() % ALIGNMENT:
            tensor = tensor.clone()
        if not tensor.numel():
            return self.allocate(name, 0, work)
        # torch reuses freed memory in the order of its stream.
        return DeviceBuffer(tensor.data_ptr(), tensor, keep_until_complete=False)

    def allocate(self, name: str, nbytes: int, work: Workspace) -> DeviceBuffer:
        """Return a new tensor of bytes; at least one, so that it has an address.

        Args:
            name, nbytes, work: As in `GpuArrays.allocate`.
        """
        memory = self._torch.empty(max(nbytes, 1), dtype=self._torch.uint8, device=self._device)
        return DeviceBuffer(memory.data_ptr(), memory)

    def result(
        self, buffer: DeviceBuffer, shape: tuple[int, ...], dtype: DType, stream: int
    ) -> Any:
        """Return a tensor over the buffer; work enqueued on the stream later can read it.

        Args:
            buffer, shape, dtype, stream: As in `GpuArrays.result`.
        """
        nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        return buffer.owner[:nbytes].view(getattr(self._torch, dtype.name)).view(shape)

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return a tensor on the GPU."""
        return host_arrays.TorchArrays(self._torch).from_host(array, dtype).to(self._device)


class DeviceArray:
    """An array on a GPU for libraries that know `__cuda_array_interface__`.

    Args:
        buffer: Its memory.
        shape: Its sizes.
        dtype: The element type.
        stream: The handle of the stream that computes it; None: it is complete.
    """

    def __init__(
        self, buffer: DeviceBuffer, shape: tuple[int, ...], dtype: DType, stream: int | None
    ) -> None:
        self._buffer = buffer
        self.shape = shape
        self.dtype = dtype.numpy
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (buffer.address, False),
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
        """Return the stream that computes the array, if the array states one."""
        return self._stream or own

    def to_device(self, array: Any, name: str, work: Workspace, stream: int) -> DeviceBuffer:
        """Return the memory of an array, or an aligned copy of it.

        Args:
            array, name, work, stream: As in `GpuArrays.to_device`.

        Raises:
            DeviceError: The array is on another GPU.
            SignatureError: The array is not contiguous.
        """
        place = getattr(array, "__dlpack_device__", lambda: (2, self._gpu.index))()
        if int(place[1]) != self._gpu.index:
            raise DeviceError(f"{name} is on GPU {int(place[1])}, the program is on {self._gpu}")
        interface = array.__cuda_array_interface__
        address, shape = interface["data"][0], tuple(interface["shape"])
        itemsize = np.dtype(interface["typestr"]).itemsize
        nbytes = itemsize * int(np.prod(shape, dtype=np.int64))
        strides = interface.get("strides")
        if nbytes and strides is not None and tuple(strides) != _contiguous(shape, itemsize):
            raise SignatureError(f"{name} has gaps between its elements; pass a contiguous copy")
        if interface.get("stream") not in (None, stream):
            self._gpu.synchronize(interface["stream"])
        if nbytes and address % ALIGNMENT == 0:
            return DeviceBuffer(address, array)
        block = work.block(name, nbytes)
        self._gpu.copy(block.address, address, nbytes, stream)
        return DeviceBuffer(block.address, (block, array))

    def allocate(self, name: str, nbytes: int, work: Workspace) -> DeviceBuffer:
        """Return a new block, which the result owns.

        Args:
            name, nbytes, work: As in `GpuArrays.allocate`.
        """
        block = self._gpu.allocate(nbytes)
        return DeviceBuffer(block.address, block)

    def result(
        self, buffer: DeviceBuffer, shape: tuple[int, ...], dtype: DType, stream: int
    ) -> Any:
        """Return an array of the library of the first argument, or one for any library.

        Args:
            buffer, shape, dtype, stream: As in `GpuArrays.result`.
        """
        if self._stream is None:  # the module's own stream may be gone when the array is used
            self._gpu.synchronize(stream)
        array = DeviceArray(buffer, shape, dtype, self._stream)
        return self._asarray(array) if self._asarray else array

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return an array of the library with the elements of an array of the host."""
        return self._asarray(array) if self._asarray else array


def _contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of a contiguous array."""
    strides = [itemsize]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides)) if shape else ()
