"""Parameters of every element type, library and layout."""

import ml_dtypes
import numpy as np
import pytest
import torch

from pelton.runtime.archive import parameter as parameter_module
from pelton.runtime.archive.parameter import Parameter, blob_of, parameter_of
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.errors import ParameterError


def splat(pattern: bytes, type_name: str, shape: tuple[int, ...], nbytes: int) -> Parameter:
    data = np.frombuffer(pattern, np.uint8)
    return Parameter("splat", type_name, shape, nbytes, data, splat=True)


@pytest.mark.parametrize("name", DTYPES)
def test_torch_tensor_of_every_type_is_seen_without_a_copy(name: str) -> None:
    tensor = torch.zeros(2, 4, dtype=getattr(torch, name))
    parameter = parameter_of("a", tensor)
    assert parameter.dtype is DTYPES[name]
    assert parameter.array().dtype == DTYPES[name].numpy
    assert parameter.array().ctypes.data == tensor.data_ptr()


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_array_of_every_type_is_seen_without_a_copy(name: str) -> None:
    array = np.zeros((2, 4), DTYPES[name].numpy)
    parameter = parameter_of("a", array)
    assert parameter.dtype is DTYPES[name]
    assert np.shares_memory(parameter.array(), array)


def test_strided_tensor_has_its_contents_in_row_order() -> None:
    tensor = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3).t()
    parameter = parameter_of("a", tensor)
    assert parameter.array().ctypes.data == tensor.data_ptr()
    assert parameter.contents().tobytes() == tensor.contiguous().view(torch.uint8).numpy().tobytes()


def test_expanded_and_conjugated_tensors_have_their_values() -> None:
    expanded = torch.ones(1, 2).expand(3, 2)
    conjugated = torch.tensor([1 + 2j]).conj()
    np.testing.assert_array_equal(parameter_of("a", expanded).array(), np.ones((3, 2)))
    assert parameter_of("a", conjugated).array()[0] == 1 - 2j


def test_scalar_and_empty_tensors_keep_their_shapes() -> None:
    assert parameter_of("a", torch.tensor(3.0, dtype=torch.bfloat16)).array().shape == ()
    assert parameter_of("a", torch.zeros(0, 4)).array().shape == (0, 4)
    assert parameter_of("a", np.float32(3)).array() == 3


def test_array_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        parameter_of("a", np.zeros(2)).array()[0] = 1


def test_big_endian_array_is_stored_little_endian() -> None:
    assert parameter_of("a", np.array([1], ">i4")).contents().tobytes() == b"\1\0\0\0"


def test_four_bit_elements_are_packed_two_to_a_byte() -> None:
    parameter = parameter_of("a", np.array([[1, 2, -1]], ml_dtypes.int4))
    assert parameter.contents().tobytes() == b"\x21\x0f"
    assert parameter.array().tolist() == [[1, 2, -1]]


def test_float4_pairs_of_torch_count_as_two_elements() -> None:
    tensor = torch.tensor([[0x21], [0x43]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    parameter = parameter_of("a", tensor)
    assert str(parameter) == "a (float4_e2m1fn 2x2)"
    assert parameter.array().astype(float).tolist() == [[0.5, 1.0], [1.5, 2.0]]


def test_array_that_is_seen_through_dlpack_is_accepted() -> None:
    class Foreign:
        def __dlpack__(self, **options: object) -> object:
            return np.ones(2).__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    assert parameter_of("a", Foreign()).array().tolist() == [1, 1]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array(["text"]), "which archives cannot store"),
        (torch.eye(2).to_sparse(), "to_dense"),
        (torch.zeros(2, device="meta"), "no data"),
        ([1, 2], "must be a tensor or an array, not list"),
        (None, "must be a tensor or an array, not NoneType"),
    ],
)
def test_what_is_no_dense_tensor_is_refused_by_name(value: object, message: str) -> None:
    with pytest.raises(ParameterError, match=f"'weight'.*{message}"):
        parameter_of("weight", value)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_unknown_element_type_is_refused_with_those_known() -> None:
    with pytest.raises(ParameterError, match=r"'weight' has element type complex32.*float64"):
        parameter_of("weight", torch.zeros(2, dtype=torch.complex32))


def test_fake_tensor_is_refused() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        tensor = torch.zeros(2)
    with pytest.raises(ParameterError, match="FakeTensor"):
        parameter_of("weight", tensor)


@pytest.mark.parametrize("name", [3, "\ud800"])
def test_name_that_is_no_utf8_text_is_refused(name: object) -> None:
    with pytest.raises(ParameterError, match="UTF-8"):
        parameter_of(name, np.zeros(1))  # type: ignore[arg-type]


def test_strided_blob_is_refused() -> None:
    with pytest.raises(ParameterError, match="'blob' is not a contiguous buffer"):
        blob_of("blob", memoryview(b"abcd")[::2])


def test_blob_cannot_be_read_as_an_array() -> None:
    with pytest.raises(ParameterError, match="element type is not known"):
        blob_of("blob", b"abcd").array()


def test_splat_is_one_element_broadcast() -> None:
    array = splat(np.float32(2.5).tobytes(), "float32", (3, 4), 48).array()
    assert array.strides == (0, 0)
    assert (array == 2.5).all()


def test_splat_of_a_short_pattern_fills_the_element() -> None:
    assert splat(b"\1", "int16", (2,), 4).array().tolist() == [257, 257]


def test_splat_of_a_long_pattern_alternates() -> None:
    assert splat(b"\1\2", "int8", (4,), 4).array().tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "parameter",
    [
        parameter_of("contiguous", np.arange(100, dtype=np.int16)),
        parameter_of("strided", np.arange(120, dtype=np.int16).reshape(20, 6)[:, 1:].T),
        parameter_of(
            "row longer than a chunk", np.arange(400, dtype=np.int8).reshape(2, 200)[:, ::2]
        ),
        parameter_of("scalar", np.int64(7)),
        splat(b"\1\2", "int8", (150,), 150),
    ],
    ids=lambda parameter: parameter.name,
)
def test_chunks_are_the_contents_in_small_pieces(
    parameter: Parameter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameter_module, "CHUNK_BYTES", 64)
    pieces = [piece.tobytes() for piece in parameter.chunks()]
    assert b"".join(pieces) == parameter.contents().tobytes()
    assert max(map(len, pieces)) <= 64


class OnDevice:
    """A torch tensor that is only reached by copies, as one on another device."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def reshape(self, *shape: int) -> "OnDevice":
        return OnDevice(self.tensor.reshape(*shape))

    def __getitem__(self, index: slice) -> "OnDevice":
        return OnDevice(self.tensor[index])

    def cpu(self) -> torch.Tensor:
        return self.tensor.clone()

    def numel(self) -> int:
        return self.tensor.numel()

    def element_size(self) -> int:
        return self.tensor.element_size()

    def data_ptr(self) -> int:
        return 1


def test_tensor_on_another_device_is_copied_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameter_module, "CHUNK_BYTES", 64)
    tensor = torch.arange(60, dtype=torch.float32).reshape(6, 10)
    parameter = Parameter("a", "float32", (6, 10), 240, OnDevice(tensor))
    pieces = [piece.tobytes() for piece in parameter.chunks()]
    assert b"".join(pieces) == tensor.numpy().tobytes()
    assert max(map(len, pieces)) <= 64
    np.testing.assert_array_equal(parameter.array(), tensor.numpy())
