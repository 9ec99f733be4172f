"""Integers wrap into the range of a type as torch converts them."""

import pytest
import torch

from pelton.aot.decompositions.wrapping import wrapped


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32], ids=str)
@pytest.mark.parametrize("number", [0, -1, 127, 128, 200, 255, 256, -129, 2**31, -(2**31) - 1])
def test_a_number_wraps_as_torch_converts_it(dtype, number):
    assert wrapped(number, dtype) == torch.tensor(number).to(dtype).item()
