"""Arguments of rank 0 to 3 go in right with every stride and size, one element and none too."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from pelton import aot, runtime
from pelton.runtime.call.dtypes import DTYPES, DType
from pelton.runtime.device.devices import open_device
from pelton.runtime.device.hal_arrays import arrays_for

CPU = open_device("cpu")
SIZES = (0, 1, 2, 5)


def layouts(numbers: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Return views of every kind over numbers that all differ."""
    yield "an element", numbers[5]
    for n in SIZES:
        yield f"{n} by steps", numbers[3 : 3 + 7 * n : 7]
        yield f"{n} expanded", numbers[4:5].expand(n)
        yield f"{n} unaligned", numbers[1 : 1 + n]
    square, cube = numbers[:400].reshape(20, 20), numbers[:1000].reshape(10, 10, 10)
    for a, b in itertools.product(SIZES, SIZES):
        yield f"{a}x{b} transposed", square.t()[:a, :b]
        yield f"{a}x{b} by steps", square[::3, ::2][:a, :b]
        yield f"{a}x{b} expanded", square[:a, :1].expand(a, b)
        yield f"{a}x{b} strided", numbers.as_strided((a, b), (100, 7), 3)
    for a, b, c in ((1, 1, 1), (2, 1, 3), (1, 3, 1), (0, 2, 1), (2, 2, 2)):
        yield f"{a}x{b}x{c} permuted", cube.permute(2, 0, 1)[:a, :b, :c]
        yield f"{a}x{b}x{c} strided", numbers.as_strided((a, b, c), (0, 3, 200), 1)
        yield f"{a}x{b}x{c} by steps", cube[1::2, ::3, 2::4][:a, :b, :c]


def numpy_forms(array: np.ndarray[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Return arrays of the same numbers that lie in memory in other ways."""
    yield "as it is", array
    yield "read only", np.lib.stride_tricks.as_strided(array, writeable=False)
    yield "other byte order", array.astype(array.dtype.newbyteorder())
    yield (
        "reversed",
        array[(slice(None, None, -1),) * array.ndim].copy()[(slice(None, None, -1),) * array.ndim],
    )
    if not array.ndim:
        yield "scalar", array[()]


def there_and_back(array: Any, dtype: DType, copy: bool) -> np.ndarray[Any, Any]:
    library = arrays_for(array)
    view, _ = library.to_view(CPU, array, dtype, copy)
    return np.asarray(library.from_view(CPU, view, dtype))


@pytest.mark.parametrize("copy", [False, True], ids=["lent", "owned"])
@pytest.mark.parametrize("row", ["int64", "float32", "float16", "int8", "bool", "complex64"])
def test_every_layout_comes_back_as_it_was(row: str, copy: bool) -> None:
    dtype = DTYPES[row]
    for layout, tensor in layouts(torch.arange(2000).to(getattr(torch, row))):
        array = tensor.numpy()
        got = there_and_back(tensor, dtype, copy)
        assert got.shape == array.shape, layout
        assert np.array_equal(got, array), layout
        for form, given in numpy_forms(array):
            got = there_and_back(given, dtype, copy)
            assert got.shape == array.shape, (layout, form)
            assert np.array_equal(got, array), (layout, form)


@pytest.mark.parametrize("row", ["bfloat16", "float8_e4m3fn"])
def test_types_that_only_torch_knows_come_back_as_they_were(row: str) -> None:
    dtype = DTYPES[row]
    library = arrays_for(torch.ones(1))
    for layout, tensor in layouts((torch.arange(2000) % 200).to(getattr(torch, row))):
        for copy in (False, True):
            view, _ = library.to_view(CPU, tensor, dtype, copy)
            back = library.from_view(CPU, view, dtype)
            assert back.shape == tensor.shape, layout
            assert back.tolist() == tensor.tolist(), layout


def test_an_argument_of_one_element_may_have_any_stride_where_it_is_overwritten() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.scatter(x, 0, torch.zeros_like(x), 2)

    spec = aot.InputInfo(((1, 4, 8),), torch.int64)
    executable = runtime.load(bytes(aot.export(program, args=[spec]).compile().map_memory()))
    for size in (1, 2, 4):
        x = torch.arange(3 * size)[::3]
        assert executable(x).tolist() == program(x).tolist()


def test_a_parameter_of_one_element_may_have_any_stride() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor([2.0, 9.0, 9.0])[::3])
            self.shift = torch.nn.Parameter(torch.tensor([[3.0, 9.0]] * 2).bfloat16()[::2, ::2])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale + self.shift

    x = torch.ones(3)[::3]
    got = runtime.load(bytes(aot.export(Scaled(), args=(x,)).compile().map_memory()))(x)
    assert got.tolist() == [[5.0]]
