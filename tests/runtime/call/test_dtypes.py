"""Element types: the table, and lookups by torch's and numpy's types."""

import numpy as np
import pytest
import torch

from pelton.runtime.call.dtypes import (
    BY_SAFETENSORS,
    BY_TORCH_MLIR,
    DTYPES,
    PACKED_DTYPES,
    DType,
    dtype_of,
)

ROWS = list(DTYPES.values())


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_torch_and_numpy_types_lead_to_the_row(row: DType) -> None:
    assert dtype_of(getattr(torch, row.name)) is row
    assert dtype_of(row.numpy) is row
    assert dtype_of(row.numpy.type) is row
    assert dtype_of(row.name) is row


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_size_agrees_with_torch_and_numpy(row: DType) -> None:
    assert row.itemsize == getattr(torch, row.name).itemsize == row.numpy.itemsize
    assert row.bits == 8 * row.itemsize


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_hal_code_states_the_number_of_bits(row: DType) -> None:
    assert row.hal & 0xFF == row.bits


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_bytes_mean_the_same_in_torch_and_numpy(row: DType) -> None:
    value = torch.tensor([1], dtype=torch.float32).to(getattr(torch, row.name))
    raw = value.view(torch.uint8).numpy().tobytes()
    assert np.frombuffer(raw, row.numpy).astype(np.complex64)[0] == 1


def test_names_and_codes_are_unique() -> None:
    assert len({row.hal for row in ROWS}) == len(ROWS)
    assert len({row.onnx for row in (*ROWS, *PACKED_DTYPES.values())}) == len(ROWS) + 3
    assert len(BY_TORCH_MLIR) == len(ROWS)
    assert len(BY_SAFETENSORS) == sum(
        row.safetensors is not None for row in (*ROWS, *PACKED_DTYPES.values())
    )


@pytest.mark.parametrize("value", [None, "text", 3, np.dtype("U4"), np.dtype("M8[s]"), object, str])
def test_what_is_no_element_type_has_no_row(value: object) -> None:
    assert dtype_of(value) is None


def test_quantized_and_packed_types_have_no_row() -> None:
    assert dtype_of(torch.quint8) is None
    assert dtype_of("int4") is None


def test_other_byte_order_is_the_same_element_type() -> None:
    assert dtype_of(np.dtype(">f4")) is DTYPES["float32"]


def test_types_narrower_than_a_byte_take_a_byte_each_in_memory() -> None:
    assert [row.itemsize for row in PACKED_DTYPES.values()] == [1, 1, 1]


def test_row_shows_as_the_expression_that_finds_it() -> None:
    assert repr(DTYPES["int8"]) == "DTYPES['int8']"
    assert str(DTYPES["int8"]) == "int8"
