"""GPU arrays: buffers, results and errors of each library, on a fake GPU."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch

from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.device import cuda, host_arrays
from pelton.runtime.device.gpu_arrays import (
    DeviceArray,
    DeviceBuffer,
    DoubleBuffer,
    HostArrays,
    InterfaceArrays,
    TorchArrays,
    Workspace,
    default_gpu_arrays,
    gpu_arrays_for,
)
from pelton.runtime.errors import DeviceError, SignatureError
from tests.runtime.fake_gpu import FakeDriver

FLOAT = DTYPES["float32"]
ROWS = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture
def gpu() -> cuda.Gpu:
    return cuda.Gpu(FakeDriver(), 0)


def contents(buffer: DeviceBuffer, count: int) -> list[float]:
    return list((ctypes.c_float * count).from_address(buffer.address))


def test_workspace_reuses_blocks_by_name(gpu: cuda.Gpu) -> None:
    work = Workspace(gpu)
    small = work.block("x", 16)
    assert work.block("x", 8) is small and work.block("y", 8) is not small
    large = work.block("x", 64)
    assert large is not small and large.nbytes >= 64
    assert work.block("x", 64) is large


def test_state_is_written_beside_the_current_value(gpu: cuda.Gpu) -> None:
    first, second = gpu.allocate(4), gpu.allocate(4)
    state = DoubleBuffer(first, second)
    state.swap()
    assert (state.current, state.spare) == (second, first)


# Arrays of the host


def test_arrays_of_the_host_are_copied_to_the_device_and_back(gpu: cuda.Gpu) -> None:
    library, work, stream = HostArrays(gpu, host_arrays.NUMPY), Workspace(gpu), gpu.new_stream()
    buffer = library.to_device(ROWS.T, "x", work, stream.handle)
    assert contents(buffer, 8) == ROWS.T.ravel().tolist()
    assert buffer.keep_until_complete and buffer.owner is work.block("x", 32)
    result = library.result(buffer, (4, 2), FLOAT, stream.handle)
    assert result.tolist() == ROWS.T.tolist()
    assert library.allocate("y", 32, work).address == work.block("y", 32).address
    assert library.stream(7) == 7


def test_array_that_numpy_cannot_read_is_named(gpu: cuda.Gpu) -> None:
    library = HostArrays(gpu, host_arrays.NUMPY)
    with pytest.raises(SignatureError, match=r"^main\(\): argument x: "):
        library.to_device(object(), "main(): argument x", Workspace(gpu), 0)


def test_library_of_an_array(gpu: cuda.Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(gpu_arrays_for(gpu, ROWS), HostArrays)
    assert isinstance(gpu_arrays_for(gpu, Interface(ROWS)), InterfaceArrays)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert isinstance(gpu_arrays_for(gpu, torch.zeros(2)), HostArrays)
    assert isinstance(default_gpu_arrays(gpu), HostArrays)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert isinstance(gpu_arrays_for(gpu, torch.zeros(2)), TorchArrays)
    assert isinstance(default_gpu_arrays(gpu), TorchArrays)


# torch


@pytest.fixture
def torch_arrays(gpu: cuda.Gpu) -> TorchArrays:
    """Return torch's library with the CPU in place of the GPU."""
    library = TorchArrays(torch, gpu)
    library._device = torch.device("cpu")
    return library


def test_torch_owns_the_memory_of_results(gpu: cuda.Gpu, torch_arrays: TorchArrays) -> None:
    buffer = torch_arrays.allocate("y", 32, Workspace(gpu))
    buffer.owner.view(torch.float32)[:] = torch.arange(8.0)
    result = torch_arrays.result(buffer, (2, 4), FLOAT, 0)
    assert result.data_ptr() == buffer.address and result.tolist() == ROWS.tolist()
    empty = torch_arrays.allocate("y", 0, Workspace(gpu))
    assert empty.address
    assert torch_arrays.result(empty, (0, 4), FLOAT, 0).shape == (0, 4)


def test_views_of_torch_are_resolved(gpu: cuda.Gpu, torch_arrays: TorchArrays) -> None:
    tensor = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex64).conj().imag
    buffer = torch_arrays.to_device(tensor, "x", Workspace(gpu), 0)
    assert contents(buffer, 2) == [-2.0, 1.0]
    assert not buffer.keep_until_complete


def test_tensor_that_cannot_be_used_is_refused(gpu: cuda.Gpu, torch_arrays: TorchArrays) -> None:
    work = Workspace(gpu)
    with pytest.raises(SignatureError, match=r"^x has layout torch.sparse_coo; pass a dense"):
        torch_arrays.to_device(torch.zeros(2, 2).to_sparse(), "x", work, 0)
    with pytest.raises(DeviceError, match=r"^x is a tensor on meta, the program is on cpu; move"):
        torch_arrays.to_device(torch.zeros(2, device="meta"), "x", work, 0)


def test_tensor_without_elements_has_an_address(gpu: cuda.Gpu, torch_arrays: TorchArrays) -> None:
    assert torch_arrays.to_device(torch.zeros(0, 4), "x", Workspace(gpu), 0).address


def test_tensor_of_the_host_goes_to_the_device(torch_arrays: TorchArrays) -> None:
    assert torch_arrays.from_host(ROWS, FLOAT).tolist() == ROWS.tolist()


# __cuda_array_interface__


class Interface:
    """An array as CuPy's, over memory of the host."""

    def __init__(self, array: Any, **changes: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "data": (array.ctypes.data, False),
            "shape": array.shape,
            "typestr": array.dtype.str,
            "strides": None,
            **changes,
        }


def aligned(array: Any) -> Any:
    memory = np.empty(array.nbytes + cuda.ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % cuda.ALIGNMENT
    copied = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def test_aligned_memory_is_used_in_place(gpu: cuda.Gpu) -> None:
    array = Interface(aligned(ROWS))
    buffer = InterfaceArrays(gpu, array).to_device(array, "x", Workspace(gpu), 0)
    assert buffer == DeviceBuffer(array.array.ctypes.data, array)


def test_unaligned_memory_is_copied(gpu: cuda.Gpu) -> None:
    stream = gpu.new_stream()
    array = Interface(aligned(np.arange(9, dtype=np.float32))[1:])
    buffer = InterfaceArrays(gpu, array).to_device(array, "x", Workspace(gpu), stream.handle)
    assert buffer.address % cuda.ALIGNMENT == 0
    assert contents(buffer, 8) == list(range(1, 9))


@pytest.mark.parametrize("strides", [None, (16, 4)])
def test_contiguous_strides_are_accepted(gpu: cuda.Gpu, strides: Any) -> None:
    array = Interface(aligned(ROWS), strides=strides)
    assert InterfaceArrays(gpu, array).to_device(array, "x", Workspace(gpu), 0).address


@pytest.mark.parametrize("strides", [(32, 4), (4, 8), (0, 4)])
def test_gaps_are_refused(gpu: cuda.Gpu, strides: Any) -> None:
    array = Interface(aligned(ROWS), strides=strides)
    with pytest.raises(SignatureError, match=r"^x has gaps between its elements; pass a"):
        InterfaceArrays(gpu, array).to_device(array, "x", Workspace(gpu), 0)


def test_stream_of_an_array_is_used(gpu: cuda.Gpu) -> None:
    assert InterfaceArrays(gpu, Interface(ROWS, stream=5)).stream(1) == 5
    assert InterfaceArrays(gpu, Interface(ROWS)).stream(1) == 1


def test_result_is_an_array_with_the_interface(gpu: cuda.Gpu) -> None:
    library, work, stream = InterfaceArrays(gpu, Interface(ROWS)), Workspace(gpu), gpu.new_stream()
    buffer = library.allocate("y", 32, work)
    result = library.result(buffer, (2, 4), FLOAT, stream.handle)
    assert isinstance(result, DeviceArray) and result.shape == (2, 4) and result.dtype == np.float32
    assert result.__cuda_array_interface__["data"] == (buffer.address, False)
    assert result.__cuda_array_interface__["stream"] is None  # complete
    assert library.from_host(ROWS, FLOAT) is ROWS


def test_result_is_an_array_of_the_library_of_the_argument(gpu: cuda.Gpu) -> None:
    class Library(Interface):
        def __array_namespace__(self) -> Any:
            class Namespace:
                asarray = staticmethod(lambda array: ("converted", array))

            return Namespace

    library = InterfaceArrays(gpu, Library(ROWS, stream=3))
    word, array = library.result(library.allocate("y", 32, Workspace(gpu)), (8,), FLOAT, 3)
    assert word == "converted" and array.__cuda_array_interface__["stream"] == 3
    assert library.from_host(ROWS, FLOAT) == ("converted", ROWS)
