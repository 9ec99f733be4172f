"""HAL arrays: round trips of tensors of every library, type and layout."""

from typing import Any

import numpy as np
import pytest
import torch

from pelton.runtime.call.dtypes import DTYPES, DType
from pelton.runtime.device.devices import open_device
from pelton.runtime.device.hal_arrays import (
    ALIGNMENT,
    NUMPY,
    HalDLPackArrays,
    HalTorchArrays,
    arrays_for,
)
from pelton.runtime.errors import DeviceError, SignatureError
from tests.runtime.foreign import DistantArray, DLPackArray, NamespaceArray, aligned, unaligned

CPU = open_device("cpu")
FLOAT = DTYPES["float32"]


def there_and_back(array: Any, dtype: DType = FLOAT, copy: bool = False) -> Any:
    library = arrays_for(array)
    view, _ = library.to_view(CPU, array, dtype, copy)
    return library.from_view(CPU, view, dtype)


def values(row: DType) -> torch.Tensor:
    return torch.tensor([[0.0, 1.0], [1.0, 2.0]]).to(getattr(torch, row.name))


def raw(tensor: torch.Tensor) -> list[int]:
    return tensor.contiguous().view(torch.uint8).flatten().tolist()


@pytest.mark.parametrize("row", DTYPES.values(), ids=str)
def test_torch_tensor_of_every_type_comes_back(row: DType) -> None:
    tensor = values(row)
    back = there_and_back(tensor, row)
    assert (back.dtype, back.shape, raw(back)) == (tensor.dtype, tensor.shape, raw(tensor))


@pytest.mark.parametrize("row", DTYPES.values(), ids=str)
@pytest.mark.parametrize("place", [aligned, unaligned])
def test_numpy_array_of_every_type_comes_back(row: DType, place: Any) -> None:
    array = place(np.array([[0, 1], [1, 2]]).astype(row.numpy))
    back = there_and_back(array, row)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize("row", DTYPES.values(), ids=str)
def test_array_without_elements_comes_back(row: DType) -> None:
    for array in (np.zeros((2, 0, 3), row.numpy), torch.zeros(2, 0, 3).to(values(row).dtype)):
        back = there_and_back(array, row)
        assert type(back) is type(array)
        assert (tuple(back.shape), back.dtype) == ((2, 0, 3), array.dtype)


# Libraries


def test_library_of_an_array_is_found_by_its_type() -> None:
    assert isinstance(arrays_for(torch.zeros(1)), HalTorchArrays)
    assert isinstance(arrays_for(torch.nn.Parameter(torch.zeros(1))), HalTorchArrays)
    assert isinstance(arrays_for(DLPackArray(np.zeros(1))), HalDLPackArrays)
    for array in (np.zeros(1), np.float32(1), np.ma.zeros(1)):
        assert arrays_for(array) is NUMPY


def test_array_without_a_way_back_gives_numpy_arrays() -> None:
    assert isinstance(there_and_back(DLPackArray(np.ones(4, np.float32))), np.ndarray)


def test_array_of_the_array_api_gives_arrays_of_its_library() -> None:
    back = there_and_back(NamespaceArray(np.ones(4, np.float32)))
    assert isinstance(back, NamespaceArray)
    assert back.memory.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "memory",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        unaligned(np.arange(6, dtype=np.float32)),
        np.zeros((0, 3), np.float32),
        torch.arange(6.0)[1:],
    ],
    ids=["contiguous", "transposed", "unaligned", "empty", "offset"],
)
def test_memory_of_a_foreign_array_crosses_in_any_layout(memory: Any) -> None:
    assert there_and_back(DLPackArray(memory)).tolist() == memory.tolist()


def test_foreign_array_that_is_read_only_is_copied() -> None:
    memory = np.ones(4, np.float32)
    memory.flags.writeable = False
    assert there_and_back(DLPackArray(memory)).tolist() == [1, 1, 1, 1]


def test_foreign_array_on_another_device_is_refused() -> None:
    with pytest.raises(DeviceError) as caught:
        there_and_back(DistantArray(np.ones(4, np.float32)))
    assert str(caught.value) == (
        "a DistantArray on DLPack device 2:0 was given to a program on local-task; "
        "move it there or to the host"
    )


# Memory


def test_torch_memory_is_used_as_it_lies() -> None:
    tensor = torch.zeros(64)
    assert there_and_back(tensor).data_ptr() == tensor.data_ptr()


def test_numpy_memory_is_used_as_it_lies_when_aligned() -> None:
    array = aligned(np.zeros(64, np.float32))
    assert there_and_back(array).ctypes.data == array.ctypes.data


@pytest.mark.parametrize("array", [torch.zeros(64), aligned(np.zeros(64, np.float32))])
def test_copy_is_made_on_demand(array: Any) -> None:
    back = there_and_back(array, copy=True)
    back[0] = 5
    assert array[0] == 0


@pytest.mark.parametrize("offset", range(1, 5))
def test_unaligned_torch_memory_is_copied_to_an_aligned_place(offset: int) -> None:
    tensor = torch.arange(64.0)[offset:]
    back = there_and_back(tensor)
    assert back.data_ptr() % ALIGNMENT == 0
    assert torch.equal(back, tensor)


# Layouts that lie


def test_conjugated_view_gives_its_values_not_its_memory() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64).conj()
    assert tensor.is_conj()
    assert torch.equal(there_and_back(tensor, DTYPES["complex64"]), tensor)


def test_negated_view_gives_its_values_not_its_memory() -> None:
    tensor = torch.tensor([1 + 2j] * 4, dtype=torch.complex64).conj().imag
    assert tensor.is_neg()
    assert there_and_back(tensor).tolist() == [-2] * 4


def test_other_byte_order_gives_its_values_not_its_memory() -> None:
    assert there_and_back(np.arange(4, dtype=">f4")).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("strides", [(3, 1, 1), (3, 999, 1), (3, 0, 1)])
def test_stride_of_a_dimension_of_one_element_does_not_matter(strides: tuple[int, ...]) -> None:
    tensor = torch.arange(5000.0).as_strided((4, 1, 3), strides)
    assert torch.equal(there_and_back(tensor), tensor)


# What has no memory here


@pytest.mark.parametrize("make", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensor_is_refused(make: Any) -> None:
    with pytest.raises(SignatureError) as caught:
        there_and_back(make(torch.zeros(2, 2)))
    assert str(caught.value).startswith("a tensor without memory of its own was given (torch.spars")


def test_tensor_on_another_device_is_refused_with_the_way_here() -> None:
    with pytest.raises(DeviceError) as caught:
        there_and_back(torch.zeros(2, device="meta"))
    assert str(caught.value) == (
        "a tensor on meta was given to a program on local-task; move it with .to('cpu')"
    )
