"""Array libraries of the host: dispatch by type, arrays of results, copies and addresses."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.device.host_arrays import (
    NUMPY,
    DLPackArrays,
    LibraryTable,
    NumpyArrays,
    TorchArrays,
    arrays_for,
    default_arrays,
    host_array,
    numpy_of_dlpack,
)
from pelton.runtime.errors import SignatureError
from tests.runtime.foreign import DLPackArray, NamespaceArray

FLOAT = DTYPES["float32"]
HOST = np.float32([[1, 2], [3, 4]])


def table() -> LibraryTable[Any]:
    return LibraryTable("numpy", lambda torch: "torch", lambda array: f"dlpack {array.shape}")


def test_library_of_an_array_is_found_by_its_type() -> None:
    libraries = table()
    for _ in range(2):
        assert libraries.of(np.zeros(1)) == "numpy"
        assert libraries.of(torch.zeros(1)) == "torch"
        assert libraries.of(torch.nn.Parameter(torch.zeros(1))) == "torch"
        assert libraries.of(DLPackArray(np.zeros(3))) == "dlpack [3]"
        for scalar in (1, 2.5, True, np.float32(1), "text"):
            assert libraries.of(scalar) == "numpy"


def test_torch_is_the_default_once_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert table().default() == "torch"
    monkeypatch.delitem(sys.modules, "torch")
    assert table().default() == "numpy"
    monkeypatch.setitem(sys.modules, "torch", object())  # a module that is still being imported
    assert table().default() == "numpy"


def test_torch_is_known_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = table()
    assert libraries.default() == "torch"
    monkeypatch.delitem(sys.modules, "torch")
    assert libraries.of(torch.zeros(1)) == libraries.default() == "torch"


def test_libraries_of_this_process() -> None:
    assert arrays_for(np.zeros(1)) is NUMPY and isinstance(NUMPY, NumpyArrays)
    assert isinstance(arrays_for(torch.zeros(1)), TorchArrays)
    assert isinstance(arrays_for(DLPackArray(np.zeros(1))), DLPackArrays)
    assert isinstance(default_arrays(), TorchArrays)


@pytest.mark.parametrize(
    "library",
    [
        NUMPY,
        TorchArrays(torch),
        DLPackArrays(NamespaceArray(HOST)),
        DLPackArrays(DLPackArray(HOST)),
    ],
    ids=["numpy", "torch", "array API", "DLPack only"],
)
def test_arrays_of_the_host_are_views_and_copies_are_not(library: Any) -> None:
    array = library.from_host(HOST, FLOAT)
    assert np.asarray(numpy_of_dlpack(array)).tolist() == HOST.tolist()
    assert library.address(array) == HOST.ctypes.data
    copied = library.copy(array)
    assert type(copied) is type(array)
    assert library.address(copied) != HOST.ctypes.data
    assert np.asarray(numpy_of_dlpack(copied)).tolist() == HOST.tolist()


@pytest.mark.parametrize("row", DTYPES.values(), ids=str)
def test_torch_has_every_element_type(row: Any) -> None:
    library = TorchArrays(torch)
    array = np.array([0, 1, 2]).astype(row.numpy)
    tensor = library.from_host(array, row)
    assert tensor.dtype is library.dtype(row) is getattr(torch, row.name)
    assert tensor.view(torch.uint8).numpy().tobytes() == array.tobytes()


def test_address_of_an_array_that_numpy_cannot_read_is_unknown() -> None:
    class Private(DLPackArray):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("private")

        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise TypeError("private")

    assert DLPackArrays(Private(HOST)).address(Private(HOST)) == 0


def test_element_type_that_dlpack_lacks_is_converted_by_numpy() -> None:
    class Narrow(DLPackArray):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("unsupported type")

        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            return self.memory

    array = np.ones(3, ml_dtypes.float8_e4m3fn)
    assert numpy_of_dlpack(Narrow(array)).dtype == array.dtype


@pytest.mark.parametrize(
    "value",
    [HOST, HOST.T.copy().T, torch.from_numpy(HOST), torch.from_numpy(HOST).T.contiguous().T],
    ids=["numpy", "strided numpy", "torch", "strided torch"],
)
def test_host_array_is_contiguous(value: Any) -> None:
    array = host_array(value, "argument x")
    assert array.flags.c_contiguous and array.tolist() == HOST.tolist()


def test_value_that_is_no_tensor_is_named() -> None:
    with pytest.raises(SignatureError, match=r"^main\(\): argument x: "):
        host_array(object(), "main(): argument x")
