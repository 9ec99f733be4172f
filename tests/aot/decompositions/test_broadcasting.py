"""Vectors along one dimension."""

import pytest
import torch

from pelton.aot.decompositions.broadcasting import along


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_a_vector_extends_along_one_dimension(rank, length):
    for dim in range(rank):
        found = along(torch.arange(length), dim, rank)
        assert list(found.shape) == [length if axis == dim else 1 for axis in range(rank)]
        assert found.flatten().tolist() == list(range(length))
