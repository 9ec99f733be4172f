"""Parameters: a name, an element type and a shape, and a view of the contents.

A parameter does not own its contents: they are a range of a mapped file, the pattern of a splat, a
numpy array, or a torch tensor on any device. torch is not imported here: its tensors exist only
once the caller has imported it.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ..call.dtypes import DTYPES, PACKED_DTYPES, DType, dtype_of
from ..errors import ParameterError

CHUNK_BYTES = 16 << 20
"""The most bytes that `Parameter.chunks` copies at once."""


class DeviceTensor(Protocol):
    """A tensor on a device other than the CPU, with the methods of torch's."""

    def reshape(self, *shape: int) -> DeviceTensor:
        """Return the tensor in another shape."""

    def cpu(self) -> Any:
        """Return a copy of the tensor in the memory of the CPU."""

    def data_ptr(self) -> int:
        """Return the address of the first element."""

    def numel(self) -> int:
        """Return the number of elements."""

    def element_size(self) -> int:
        """Return the bytes of one element."""

    def __getitem__(self, index: slice) -> DeviceTensor: ...


@dataclass(frozen=True, eq=False)
class Parameter:
    """A named tensor, or a blob of bytes, in a file or in memory.

    Args:
        name: The key of the parameter.
        type_name: The element type: a name in `DTYPES` or `PACKED_DTYPES`, or a file's name of a
            type that Pelton does not know (`Q4_0`); empty for a blob.
        shape: The sizes of the dimensions in elements.
        nbytes: The number of bytes of the contents.
        data: The contents: bytes of a file, a numpy array of any strides, a tensor on another
            device, or, for a splat, the bytes of the repeated pattern.
        splat: The contents are `data` repeated up to `nbytes`.

    Example:
        >>> parameter = parameter_of("scale", np.ones((2, 3), np.float32))
        >>> parameter.dtype, parameter.shape, parameter.nbytes
        (DTYPES['float32'], (2, 3), 24)
    """

    name: str
    type_name: str
    shape: tuple[int, ...]
    nbytes: int
    data: NDArray[Any] | DeviceTensor
    splat: bool = False

    @property
    def dtype(self) -> DType | None:
        """The element type; None for a blob and for types that Pelton does not know."""
        return DTYPES.get(self.type_name) or PACKED_DTYPES.get(self.type_name)

    def __str__(self) -> str:
        return f"{self.name} ({type_text(self.type_name, self.shape)})"

    def array(self) -> NDArray[Any]:
        """Return the contents as a read-only array of `dtype.numpy` and `shape`.

        The array is a view of the file or tensor. Types narrower than a byte are unpacked, and
        tensors on other devices are copied. A splat is one element broadcast to the shape.

        Raises:
            ParameterError: The element type is not known.

        Example:
            >>> parameter_of("scale", np.float32([1, 2])).array()
            array([1., 2.], dtype=float32)
        """
        dtype = self.dtype
        if dtype is None:
            raise ParameterError(
                f"parameter {self} cannot be read as an array: "
                "its element type is not known; `contents` gives its bytes"
            )
        if self.splat and dtype.bits >= 8 and len(self._pattern) <= dtype.itemsize:
            element = np.resize(self._pattern, dtype.itemsize).view(dtype.numpy)
            array = np.broadcast_to(element[0], self.shape)
        elif self._is_live(dtype):
            array = cast("NDArray[Any]", self.data).view()
        elif dtype.bits < 8:
            array = unpack(self.contents(), dtype, math.prod(self.shape)).reshape(self.shape)
        else:
            array = self.contents().view(dtype.numpy).reshape(self.shape)
        array.flags.writeable = False
        return array

    def contents(self) -> NDArray[np.uint8]:
        """Return the bytes of the contents in one dimension, without a copy if they are contiguous.

        Example:
            >>> parameter_of("scale", np.uint16([1, 258])).contents()
            array([1, 0, 2, 1], dtype=uint8)
        """
        if self.splat:
            return np.resize(self._pattern, self.nbytes)
        if isinstance(self.data, np.ndarray):
            return _bytes_of(self.data)
        return _bytes_of(_host_array(self.data.cpu()))

    def chunks(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the bytes of the contents in order, in pieces of at most `CHUNK_BYTES`.

        Example:
            >>> [len(piece) for piece in parameter_of("a", np.zeros((3, 5), np.int8).T).chunks()]
            [15]
        """
        if self.splat:
            block = np.resize(self._pattern, min(self.nbytes, CHUNK_BYTES))
            for start in range(0, self.nbytes, CHUNK_BYTES):
                yield block[: self.nbytes - start]
        elif isinstance(self.data, np.ndarray):
            yield from _chunks_of(self.data)
        else:
            flat = self.data.reshape(-1)
            step = CHUNK_BYTES // self.data.element_size()
            for start in range(0, self.data.numel(), step):
                yield _bytes_of(_host_array(flat[start : start + step].cpu()))

    def identity(self) -> Hashable | None:
        """Return a key that is equal for parameters with the same memory; None if it has none.

        Tied weights (one tensor under several names) have equal identities.

        Example:
            >>> weight = np.ones(4)
            >>> parameter_of("a", weight).identity() == parameter_of("b", weight).identity()
            True
            >>> parameter_of("a", weight).identity() == parameter_of("b", weight + 0).identity()
            False
        """
        if self.splat or not self.nbytes:
            return None
        if isinstance(self.data, np.ndarray):
            where: Hashable = (self.data.ctypes.data, self.data.strides)
        else:
            tensor: Any = self.data
            where = (str(tensor.device), tensor.data_ptr(), tuple(tensor.stride()))
        return (where, self.type_name, self.shape)

    @property
    def _pattern(self) -> NDArray[np.uint8]:
        return cast("NDArray[np.uint8]", self.data)

    def _is_live(self, dtype: DType) -> bool:
        data = self.data
        return (
            isinstance(data, np.ndarray) and data.dtype == dtype.numpy and data.shape == self.shape
        )


def parameter_of(name: str, value: Any) -> Parameter:
    """Return a parameter over the memory of a tensor.

    Args:
        name: The key of the parameter: text that UTF-8 can encode.
        value: A numpy array or scalar, a torch tensor, an array of a library that numpy can
            read (JAX on the CPU), or another parameter.

    Raises:
        ParameterError: The name is not text, or the value is not a dense tensor with data of a
            known element type.

    Example:
        >>> str(parameter_of("bias", np.zeros(3, np.float16)))
        'bias (float16 3)'
    """
    if not isinstance(name, str) or not _is_utf8(name):
        raise ParameterError(f"the name of a parameter must be text in UTF-8, not {name!r}")
    if isinstance(value, Parameter):
        return replace(value, name=name)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_torch(name, value.detach())
    array = _as_numpy(name, value)
    dtype = dtype_of(array.dtype) or PACKED_DTYPES.get(array.dtype.name)
    if dtype is None:
        raise ParameterError(_unknown_type(name, str(array.dtype)))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    shape = array.shape
    if dtype.bits < 8:
        array = pack(array)
    return Parameter(name, dtype.name, shape, size_in_bytes(dtype, shape), array)


def blob_of(name: str, blob: Any) -> Parameter:
    """Return the bytes of a buffer as a parameter without an element type.

    Raises:
        ParameterError: `blob` is not a contiguous buffer.

    Example:
        >>> str(blob_of("tokenizer", b"abc"))
        'tokenizer (blob of 3 bytes)'
    """
    try:
        data = np.frombuffer(memoryview(blob).cast("B"), np.uint8)
    except TypeError as error:
        raise ParameterError(f"blob {name!r} is not a contiguous buffer: {error}") from error
    return Parameter(name, "", data.shape, data.nbytes, data)


def size_in_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """Return the size in bytes of a tensor in an archive.

    Example:
        >>> size_in_bytes(PACKED_DTYPES["int4"], (3, 3))
        5
    """
    return (math.prod(shape) * dtype.bits + 7) // 8


def type_text(type_name: str, shape: tuple[int, ...]) -> str:
    """Return an element type and shape as text for messages.

    Example:
        >>> type_text("float32", (2, 3)), type_text("int8", ()), type_text("", (7,))
        ('float32 2x3', 'int8 scalar', 'blob of 7 bytes')
    """
    if not type_name:
        return f"blob of {shape[0]} bytes"
    return f"{type_name} {'x'.join(map(str, shape)) or 'scalar'}"


def pack(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the elements of a 4-bit type packed two to a byte, the first in the low bits.

    Example:
        >>> import ml_dtypes
        >>> pack(np.array([1, 2, -1], ml_dtypes.int4))
        array([33, 15], dtype=uint8)
    """
    nibbles = _bytes_of(array) & np.uint8(0x0F)
    packed: NDArray[np.uint8] = nibbles[0::2].copy()
    packed[: len(nibbles) // 2] |= nibbles[1::2] << np.uint8(4)
    return packed


def unpack(packed: NDArray[np.uint8], dtype: DType, count: int) -> NDArray[Any]:
    """Return elements of a packed 4-bit type, one per byte.

    Args:
        packed: The packed elements.
        dtype: The element type.
        count: How many elements to return.

    Example:
        >>> unpack(np.uint8([33, 15]), PACKED_DTYPES["int4"], 3).tolist()
        [1, 2, -1]
    """
    nibbles = np.empty(2 * len(packed), np.uint8)
    nibbles[0::2] = packed & np.uint8(0x0F)
    nibbles[1::2] = packed >> np.uint8(4)
    return nibbles[:count].view(dtype.numpy)


def _as_numpy(name: str, value: Any) -> NDArray[Any]:
    try:
        if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return cast("NDArray[Any]", np.from_dlpack(value))
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        kind = type(value).__qualname__
        raise ParameterError(
            f"parameter {name!r}: numpy cannot read this {kind}: {error}"
        ) from error
    raise ParameterError(
        f"parameter {name!r} must be a tensor or an array, not {type(value).__qualname__}"
    )


def _of_torch(name: str, tensor: Any) -> Parameter:
    if str(tensor.layout) != "torch.strided":
        raise ParameterError(
            f"parameter {name!r} has layout {tensor.layout}; archives store dense tensors: "
            "call .to_dense() on it"
        )
    if tensor.device.type == "meta" or hasattr(tensor, "fake_mode"):
        raise ParameterError(
            f"parameter {name!r} has no data: it is on the meta device or a FakeTensor; "
            "pass its real values"
        )
    spelled = str(tensor.dtype).removeprefix("torch.")
    shape = tuple(int(size) for size in tensor.shape)
    if spelled == "float4_e2m1fn_x2":
        dtype: DType | None = PACKED_DTYPES["float4_e2m1fn"]
        shape = (*shape[:-1], 2 * shape[-1]) if shape else (2,)
    else:
        dtype = dtype_of(tensor.dtype)
    if dtype is None:
        raise ParameterError(_unknown_type(name, spelled))
    data = tensor if tensor.device.type != "cpu" else _host_array(tensor)
    return Parameter(name, dtype.name, shape, size_in_bytes(dtype, shape), data)


class _TorchMemory:
    """The memory of a torch tensor on the CPU, with numpy's array interface."""

    def __init__(self, tensor: Any, element: np.dtype[Any]) -> None:
        self.tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "data": (tensor.data_ptr(), False),
            "typestr": element.str,
            "shape": tuple(tensor.shape),
            "strides": tuple(stride * element.itemsize for stride in tensor.stride()),
        }


def _host_array(tensor: Any) -> NDArray[Any]:
    """Return the memory of a torch tensor on the CPU as an array; packed types as bytes."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    dtype = dtype_of(tensor.dtype)
    element = np.dtype(np.uint8) if dtype is None else dtype.numpy
    if not tensor.numel():
        return np.empty(tuple(tensor.shape), element)
    if not tensor.data_ptr():
        raise ParameterError(f"a {type(tensor).__qualname__} gives no access to its memory")
    # The interface has only numpy's own types; those of ml_dtypes are passed as unsigned integers.
    native = element if element.isbuiltin == 1 else np.dtype(f"<u{element.itemsize}")
    return np.asarray(_TorchMemory(tensor, native)).view(element)


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _chunks_of(array: NDArray[Any]) -> Iterator[NDArray[np.uint8]]:
    if array.flags.c_contiguous:
        flat = _bytes_of(array)
        for start in range(0, len(flat), CHUNK_BYTES):
            yield flat[start : start + CHUNK_BYTES]
            _release(flat[start : start + CHUNK_BYTES])
    elif array.nbytes <= CHUNK_BYTES:
        yield _bytes_of(array)
    else:
        rows = CHUNK_BYTES * len(array) // array.nbytes
        for start in range(0, len(array), rows or 1):
            yield from _chunks_of(array[start : start + rows] if rows else array[start])


def _release(piece: NDArray[np.uint8]) -> None:
    """Release the pages of a piece of a read-only mapped file, which can be read again."""
    owner: Any = piece
    while isinstance(owner, np.ndarray):
        owner = owner.base
    mapped = owner.obj if isinstance(owner, memoryview) else owner
    if not isinstance(mapped, mmap.mmap) or not hasattr(mapped, "madvise"):
        return
    with memoryview(mapped) as view:
        # Of a private mapping, this would discard written data.
        if view.readonly:
            start = piece.ctypes.data - np.frombuffer(view, np.uint8).ctypes.data
            page = start // mmap.PAGESIZE * mmap.PAGESIZE
            mapped.madvise(mmap.MADV_DONTNEED, page, start + len(piece) - page)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unknown_type(name: str, spelled: str) -> str:
    known = ", ".join((*DTYPES, *PACKED_DTYPES))
    found = f"parameter {name!r} has element type {spelled}"
    return f"{found}, which archives cannot store; known: {known}"
