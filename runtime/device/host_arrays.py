"""Array libraries of the host: torch, numpy, and any other with the DLPack protocol.

torch is never imported here: its tensors exist only once a caller has imported it. For buffers of
IREE see `hal_arrays`, for those of a GPU `gpu_arrays`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..archive.parameter import parameter_of
from ..call.dtypes import DType
from ..errors import ParameterError, SignatureError

LibraryT = TypeVar("LibraryT")


class ArrayLibrary(Protocol):
    """An array library: makes arrays of results in the host's memory."""

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return an array of the library that has the memory of a numpy array."""

    def address(self, array: Any) -> int:
        """Return the address of a result's memory."""

    def copy(self, array: Any) -> Any:
        """Return a copy in memory of its own."""


class LibraryTable(Generic[LibraryT]):
    """The array libraries of a process, by the type of their arrays.

    Args:
        numpy: The library of numpy arrays, and of objects that are not arrays.
        torch: Makes the library of tensors from the module `torch`.
        dlpack: Makes the library of any other array with the DLPack protocol.
    """

    def __init__(
        self,
        numpy: LibraryT,
        torch: Callable[[Any], LibraryT],
        dlpack: Callable[[Any], LibraryT],
    ) -> None:
        self._numpy = numpy
        self._make_torch = torch
        self._make_dlpack = dlpack
        self._torch: LibraryT | None = None
        self._tensor: type | tuple[()] = ()  # torch's type of tensors, once it is imported
        self._by_type: dict[type, LibraryT] = {}  # a lookup is quicker than `isinstance`

    def of(self, array: Any) -> LibraryT:
        """Return the library of an array; numpy's for an object that is not an array."""
        known = self._by_type.get(type(array))
        if known is not None:
            return known
        if isinstance(array, np.ndarray):
            return self._by_type.setdefault(type(array), self._numpy)
        library = self._torch_library()
        if library is not None and isinstance(array, self._tensor):
            return self._by_type.setdefault(type(array), library)
        if hasattr(array, "__dlpack__") and not isinstance(array, np.generic):
            return self._make_dlpack(array)
        return self._numpy

    def default(self) -> LibraryT:
        """Return the library for results of a call without tensors: torch's once it is imported."""
        return self._torch_library() or self._numpy

    def _torch_library(self) -> LibraryT | None:
        if self._torch is None:
            torch = sys.modules.get("torch")
            if torch is not None and hasattr(torch, "Tensor"):
                self._torch, self._tensor = self._make_torch(torch), torch.Tensor
        return self._torch


class NumpyArrays:
    """numpy arrays, with the element types of `ml_dtypes`."""

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return the array itself."""
        return array

    def address(self, array: Any) -> int:
        """Return the address of a result's memory."""
        address: int = array.__array_interface__["data"][0]
        return address

    def copy(self, array: Any) -> Any:
        """Return a copy in memory of its own."""
        return array.copy()


class TorchArrays:
    """torch tensors in the memory of the host.

    Args:
        torch: The module.
    """

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self._dtypes: dict[str, Any] = {}

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return a tensor over the array's memory; torch knows only numpy's own types."""
        own = dtype.numpy.isbuiltin == 1
        tensor = self.torch.from_numpy(array if own else array.view(f"u{dtype.itemsize}"))
        return tensor if own else tensor.view(self.dtype(dtype))

    def address(self, array: Any) -> int:
        """Return the address of a result's memory."""
        address: int = array.data_ptr()
        return address

    def copy(self, array: Any) -> Any:
        """Return a copy in memory of its own."""
        return array.clone()

    def dtype(self, dtype: DType) -> Any:
        """Return torch's element type."""
        known = self._dtypes.get(dtype.name)
        return known or self._dtypes.setdefault(dtype.name, getattr(self.torch, dtype.name))


class DLPackArrays:
    """Arrays of any library with the DLPack protocol, such as CuPy and JAX.

    Args:
        array: An array of the library, whose `from_dlpack` makes the results.
    """

    def __init__(self, array: Any) -> None:
        self._from_dlpack = _from_dlpack_of(array)

    def from_host(self, array: NDArray[Any], dtype: DType) -> Any:
        """Return an array of the library, or numpy's if the library has no `from_dlpack`."""
        return self._from_dlpack(array) if self._from_dlpack else array

    def address(self, array: Any) -> int:
        """Return the address of an array's memory; 0 where it is unknown."""
        try:
            return NUMPY.address(numpy_of_dlpack(array))
        except (BufferError, RuntimeError, TypeError, ValueError):
            return 0

    def copy(self, array: Any) -> Any:
        """Return a copy in memory of its own."""
        copied = numpy_of_dlpack(array).copy()
        return self._from_dlpack(copied) if self._from_dlpack else copied


def _from_dlpack_of(array: Any) -> Any:
    """Return the `from_dlpack` of the library of an array, or None."""
    namespace = getattr(array, "__array_namespace__", None)  # the array API standard's way
    if namespace is not None:
        return getattr(namespace(), "from_dlpack", None)
    module = sys.modules.get(type(array).__module__.partition(".")[0])
    return getattr(module, "from_dlpack", None)


def numpy_of_dlpack(array: Any) -> Any:
    """Return a numpy array of the memory of a DLPack array, or of a copy of it."""
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError):
        return np.asarray(array)  # an element type that numpy's DLPack does not know


def host_array(value: Any, what: str) -> NDArray[Any]:
    """Return a contiguous array in the host's memory of a tensor of any library.

    Args:
        value: The tensor.
        what: Its name in messages.

    Raises:
        SignatureError: numpy cannot read the tensor.

    Example:
        >>> host_array(np.ones((2, 2)).T, "main(): argument x").flags.c_contiguous
        True
    """
    try:
        return np.asarray(parameter_of("value", value).array(), order="C")
    except ParameterError as error:
        raise SignatureError(f"{what}: {error}") from error


NUMPY = NumpyArrays()
_LIBRARIES: LibraryTable[ArrayLibrary] = LibraryTable(NUMPY, TorchArrays, DLPackArrays)

arrays_for = _LIBRARIES.of
"""Return the library of an array; see `LibraryTable.of`."""

default_arrays = _LIBRARIES.default
"""Return the library for results of a call without tensors; see `LibraryTable.default`."""
