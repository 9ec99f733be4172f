"""Rolled tensors, beside eager torch."""

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("shift", [0, 1, -2, 7])
def test_without_dimensions_the_flat_tensor_is_rolled(shape, shift):
    compare(aten.roll.default, torch.randn(shape), [shift])


def test_rolling_along_dimensions_is_not_decomposed():
    assert decompose(aten.roll.default, torch.randn(2, 3), [1], [0]) is NotImplemented
